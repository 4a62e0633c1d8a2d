package client;

import static org.springframework.security.config.Customizer.withDefaults;

import com.nimbusds.jose.jwk.JWK;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClientManager;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClientProviderBuilder;
import org.springframework.security.oauth2.client.endpoint.NimbusJwtClientAuthenticationParametersConverter;
import org.springframework.security.oauth2.client.endpoint.RestClientClientCredentialsTokenResponseClient;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.client.web.DefaultOAuth2AuthorizedClientManager;
import org.springframework.security.oauth2.client.web.OAuth2AuthorizedClientRepository;
import org.springframework.security.oauth2.jwt.JwtClaimNames;
import org.springframework.security.oauth2.jwt.JwtClaimValidator;
import org.springframework.security.oauth2.jwt.JwtDecoder;
import org.springframework.security.oauth2.jwt.JwtValidators;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.client.RestTemplate;

/** Who may ask for what: one address with signed tokens, one with tokens that are asked about, the rest by sign-in. */
@Configuration
class Chains {
  /** What RFC 9068 4 asks for. Without this bean Spring Security takes the type "JWT" alone, which is no access token's. */
  @Bean
  JwtDecoder decoder(@Value("${issuer}") String issuer, @Value("${audiences}") List<String> audiences) {
    var ours = new JwtClaimValidator<List<String>>(JwtClaimNames.AUD, named -> named.stream().anyMatch(audiences::contains));
    var anyClient = new JwtClaimValidator<String>("client_id", Objects::nonNull);
    // By default it gives up after half a second, which a busy machine may take.
    NimbusJwtDecoder decoder =
        NimbusJwtDecoder.withIssuerLocation(issuer).restOperations(new RestTemplate()).build();
    decoder.setJwtValidator(
        JwtValidators.createAtJwtValidator()
            .issuer(issuer)
            .validators(each -> each.putAll(Map.of(JwtClaimNames.AUD, ours, "client_id", anyClient)))
            .build());
    return decoder;
  }

  @Bean
  @Order(1)
  SecurityFilterChain signed(HttpSecurity http) {
    return http.securityMatcher("/signed")
        .authorizeHttpRequests(all -> all.anyRequest().authenticated())
        .oauth2ResourceServer(api -> api.jwt(withDefaults()))
        .build();
  }

  @Bean
  @Order(2)
  SecurityFilterChain asked(HttpSecurity http) {
    return http.securityMatcher("/asked")
        .authorizeHttpRequests(all -> all.anyRequest().authenticated())
        .oauth2ResourceServer(api -> api.opaqueToken(withDefaults()))
        .build();
  }

  @Bean
  @Order(3)
  SecurityFilterChain people(HttpSecurity http) {
    return http.authorizeHttpRequests(all -> all.requestMatchers("/service").permitAll().anyRequest().authenticated())
        .oauth2Login(withDefaults())
        .build();
  }

  /** The service signs its assertions with the key in the file; a token of a person is used for one request. */
  @Bean
  OAuth2AuthorizedClientManager manager(
      ClientRegistrationRepository registrations,
      OAuth2AuthorizedClientRepository clients,
      @Value("${service.key}") Path key)
      throws Exception {
    JWK signing = JWK.parse(Files.readString(key));
    var byKey = new RestClientClientCredentialsTokenResponseClient();
    byKey.addParametersConverter(new NimbusJwtClientAuthenticationParametersConverter<>(registration -> signing));
    var manager = new DefaultOAuth2AuthorizedClientManager(registrations, clients);
    manager.setAuthorizedClientProvider(
        OAuth2AuthorizedClientProviderBuilder.builder()
            .authorizationCode()
            .refreshToken(refresh -> refresh.clockSkew(Duration.ofDays(1)))
            .clientCredentials(service -> service.accessTokenResponseClient(byKey))
            .build());
    return manager;
  }
}
