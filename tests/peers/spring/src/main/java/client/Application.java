package client;

import java.util.HashMap;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.http.HttpStatus;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.GrantedAuthority;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.client.ClientAuthorizationException;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.annotation.RegisteredOAuth2AuthorizedClient;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.oauth2.server.resource.authentication.AbstractOAuth2TokenAuthenticationToken;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** Shows who asks, as Spring Security has understood it. */
@SpringBootApplication
@RestController
public class Application {
  public static void main(String[] arguments) {
    SpringApplication.run(Application.class, arguments);
  }

  @GetMapping({"/signed", "/asked"})
  Map<String, Object> api(AbstractOAuth2TokenAuthenticationToken<?> caller) {
    return shown(caller, caller.getTokenAttributes());
  }

  @GetMapping("/")
  Map<String, Object> page(Authentication caller, @AuthenticationPrincipal OidcUser user) {
    var told = new HashMap<>(shown(caller, user.getClaims()));
    told.put("id_token", user.getIdToken().getTokenValue());
    return told;
  }

  @GetMapping("/token")
  String token(@RegisteredOAuth2AuthorizedClient("people") OAuth2AuthorizedClient client) {
    return client.getAccessToken().getTokenValue();
  }

  @GetMapping("/service")
  String service(@RegisteredOAuth2AuthorizedClient("service") OAuth2AuthorizedClient client) {
    return client.getAccessToken().getTokenValue();
  }

  @ExceptionHandler
  @ResponseStatus(HttpStatus.UNAUTHORIZED)
  String ended(ClientAuthorizationException refusal) {
    return refusal.getError().getErrorCode();
  }

  private static Map<String, Object> shown(Authentication caller, Map<String, Object> claims) {
    var authorities = caller.getAuthorities().stream().map(GrantedAuthority::getAuthority).sorted().toList();
    return Map.of("name", caller.getName(), "authorities", authorities, "claims", claims);
  }
}
