"""The settings of the repository: its names on the wire, its administrators, its limits."""

import re
from typing import Annotated, Literal

import msgspec

from muniment.repository.content_options import S3Options
from muniment.repository.extraction_options import ExtractionOptions
from muniment.repository.index_options import IndexKind, OpenSearchOptions

Doc = msgspec.Meta

TOKENINFO_ADDRESS = re.compile(r"(.+)/(?:v1|rest)/authentication/(?:oauth/)?tokeninfo")
"""The first group begins all addresses of the directory."""


class RepositoryNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every name of the repository's interface that another system in the field may spell otherwise."""

    prefix: Annotated[str, Doc(description="First path segment of every address of the repository.")] = "rest"
    vocab_namespace: Annotated[
        str, Doc(description="XML namespace of query documents, of `dm:` elements and of objects (given 2.8, 2.9).")
    ] = "urn:muniment:vocab"
    relevance_namespace: Annotated[str, Doc(description="XML namespace of `relevance:score` (given 2.9).")] = (
        "http://a9.com/-/opensearch/extensions/relevance/1.0/"
    )
    linkrel_base: Annotated[
        str, Doc(description="Beginning of the repository's own link relations, before `/search` (given 2.10).")
    ] = "urn:muniment:linkrel"
    own_linkrel_base: Annotated[
        str, Doc(description="Beginning of the link relations that only Muniment has, before `/index-status`.")
    ] = "urn:muniment:linkrel"
    media_type: Annotated[str, Doc(description="Vendor media type; `+json` and `+xml` are appended to it.")] = (
        "application/vnd.muniment"
    )
    type_prefix: Annotated[
        str, Doc(description="Prefix of built-in types (sysobject ...), relation types and accessors (owner, world).")
    ] = ""
    system_property_prefix: Annotated[
        str, Doc(description="Prefix of the system properties, such as `r_object_id`.")
    ] = "r_"
    product: Annotated[str, Doc(description="Name of the product, as `product-info` tells it.")] = "Muniment"
    major: Annotated[
        str,
        Doc(
            description="Release of the field's interface that clients compare: `major` of `product-info`, a decimal.",
            pattern=r"^[0-9]{1,3}\.[0-9]{1,3}$",
        ),
    ] = "16.4"
    formats: Annotated[
        dict[str, str],
        Doc(description="Further names of content formats, or other meanings of known ones: name = media type."),
    ] = {}
    realm: Annotated[str, Doc(description="Realm that a 401 names to callers (`WWW-Authenticate`).")] = "repository"
    unauth_scheme_header: Annotated[
        str,
        Doc(
            description="Request header that names another scheme for a 401 to offer in the place of `Basic`, so that "
            "no browser opens its dialogue."
        ),
    ] = "Muniment-Unauth-Scheme"
    csrf_prefix: Annotated[
        str,
        Doc(
            description="What the headers about the CSRF token begin with; `-Token`, `-Header-Name` and `-Query-Name` "
            "follow."
        ),
    ] = "Muniment-CSRF"


class RepositoryOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator may set about the repository."""

    administrators: Annotated[
        tuple[str, ...],
        Doc(description="Users and groups (`name@partition`) who hold every permission on every object."),
    ] = ("administrators@directory.admin",)
    tokeninfo_url: Annotated[
        str,
        Doc(description="tokeninfo address of the directory of the callers; empty = the directory in this process."),
    ] = ""
    tokeninfo_ca_file: Annotated[
        str, Doc(description="CA certificates (PEM) to verify that directory with; empty = the system's.")
    ] = ""
    resource_secrets_file: Annotated[
        str, Doc(description="File of lines `IDENTIFIER SECRET`: of resources whose users that directory shows.")
    ] = ""
    basic_client: Annotated[
        str,
        Doc(
            description="OAuth client by whose password grant callers with HTTP Basic are signed in, such as "
            "`muniment-basic`; empty = no HTTP Basic."
        ),
    ] = ""
    basic_secret: Annotated[str, Doc(description="Secret of that client; empty for a client without one.")] = ""
    basic_seconds: Annotated[
        int,
        Doc(
            description="How long a process remembers that a name and password were right, in seconds since their last "
            "use. The directory is still asked at each request.",
            ge=1,
            le=3600,
        ),
    ] = 60
    basic_pairs: Annotated[
        int,
        Doc(
            description="Most names and passwords that one process remembers, each with a grant; a new one replaces "
            "the least recently used.",
            ge=1,
            le=100_000,
        ),
    ] = 1000
    search_page: Annotated[
        bool, Doc(description="Whether people can sign in at `/search` and search from a page there.")
    ] = True
    search_page_client: Annotated[
        str,
        Doc(
            description="OAuth client by whose password grant that page signs people in; `muniment init` makes the "
            "default one. Empty = no page."
        ),
    ] = "muniment-search"
    search_page_secret: Annotated[str, Doc(description="Secret of that client; empty for a client without one.")] = ""
    default_partition: Annotated[
        str,
        Doc(
            description="Partition of the user or group whom a name without `@` means; empty = such a name is "
            "nobody's. Feeds show the users and groups of this partition by such names."
        ),
    ] = ""
    token_in_address: Annotated[
        bool,
        Doc(
            description="Whether the parameter `access_token` of an address may carry a token. Addresses get into logs "
            "and histories."
        ),
    ] = False
    index: IndexKind = "tantivy"
    language: Annotated[
        str, Doc(description="Language whose stemming the index uses, by its English name, such as `German`.")
    ] = "English"
    languages: Annotated[
        tuple[str, ...],
        Doc(
            description="Further languages of texts, beside the repository's own, as English names. An object's "
            "language is the one that its property `language_code` names, or is detected from its text, which needs "
            "`make languages`."
        ),
    ] = ()
    synonyms: Annotated[
        tuple[str, ...],
        Doc(
            description="Words with one meaning: a search for one finds the others, too. Each text is one group, such "
            "as `car = automobile = motor vehicle`; it may hold phrases."
        ),
    ] = ()
    stop_words: Annotated[
        tuple[str, ...],
        Doc(
            description="Words that say nothing of a question, beside those that the language has anyway. Relaxed "
            "searches and excerpts pass over them; a search for them alone still finds them."
        ),
    ] = ()
    relax_searches: Annotated[
        bool,
        Doc(
            description="Whether a GET reads keywords as people type, and also shows objects that have only some of "
            "the words, if fewer than a page have all of them. The search page always does."
        ),
    ] = True
    meaning: Annotated[
        bool,
        Doc(
            description="Whether searches by words also find what is near in meaning. A model then reads the beginning "
            "of every text; it must be installed (`make meaning`)."
        ),
    ] = False
    meaning_vectors: Annotated[
        int,
        Doc(
            description="Most passages whose vectors one process remembers, 400 bytes each. If a search would "
            "have to be compared with more, it finds hits by words alone.",
            ge=1000,
            le=10_000_000,
        ),
    ] = 1_000_000
    items_per_page: Annotated[
        int, Doc(description="Page size of a feed when the request names none.", ge=1, le=1000)
    ] = 100
    max_items_per_page: Annotated[int, Doc(description="Largest page size a caller may ask for.", ge=1, le=10_000)] = (
        1000
    )
    max_page_bytes: Annotated[
        int,
        Doc(
            description="Most bytes that the things on one page of a feed may have together, if the entries show the "
            "things themselves (`inline=true`, DQL); a larger page answers 400.",
            ge=65_536,
            le=1_073_741_824,
        ),
    ] = 67_108_864
    max_page_offset: Annotated[
        int, Doc(description="Deepest hit that paging reaches; a page past it answers 400.", ge=1000, le=10_000_000)
    ] = 100_000
    question_seconds: Annotated[
        int,
        Doc(
            description="Seconds that one page of a list or a search may take; then it is stopped (503).",
            ge=1,
            le=60,
        ),
    ] = 5
    link_seconds: Annotated[
        int,
        Doc(description="How long the `next` link of a POST search can be followed, in seconds.", ge=60, le=2_592_000),
    ] = 86_400
    walk_seconds: Annotated[
        int,
        Doc(
            description="How long `next` of a search can be followed from page to page, from its first page on, in "
            "seconds.",
            ge=60,
            le=86_400,
        ),
    ] = 3600
    walk_hits: Annotated[
        int,
        Doc(
            description="Most hits that `next` shows exactly once while others write; after them it goes on by number.",
            ge=1000,
            le=100_000,
        ),
    ] = 10_000
    max_sorted_hits: Annotated[
        int,
        Doc(
            description="Most hits of a search that is sorted by properties; a search with more of them answers 400.",
            ge=1000,
            le=10_000_000,
        ),
    ] = 100_000
    max_pending_changes: Annotated[
        int,
        Doc(
            description="Changes of rights, properties and content that may be missing in the index; with more of "
            "them a search answers 503.",
            ge=100,
            le=1_000_000,
        ),
    ] = 2000
    index_check_seconds: Annotated[
        float,
        Doc(
            description="How often the index agent compares the next range of objects, at most 1000, with an index, in "
            "seconds. What differs is indexed again. 0: only when somebody asks for a check.",
            ge=0,
            le=86_400,
        ),
    ] = 10.0
    change_log_seconds: Annotated[
        int,
        Doc(
            description="How long a row of the change log is kept, in seconds. An index that was not updated for "
            "longer is made anew.",
            ge=3600,
            le=315_360_000,
        ),
    ] = 604_800
    change_log_lines: Annotated[
        int,
        Doc(
            description="Most rows of a repository's change log that are kept after all agents have read them.",
            ge=10_000,
            le=10**9,
        ),
    ] = 1_000_000
    max_searched_repositories: Annotated[
        int,
        Doc(
            description="Most repositories that one search of several covers, and most resources that it asks whether "
            "they admit its caller.",
            ge=1,
            le=100,
        ),
    ] = 20
    kept_queries: Annotated[
        int,
        Doc(
            description="Most posted searches and walks with further pages that are kept for one caller; a new one "
            "replaces the oldest.",
            ge=1,
            le=100_000,
        ),
    ] = 200
    kept_query_bytes: Annotated[
        int,
        Doc(
            description="Most bytes that the kept searches and walks of one caller may take together.",
            ge=65_536,
            le=1_073_741_824,
        ),
    ] = 2_097_152
    max_saved_searches: Annotated[
        int,
        Doc(
            description="Most saved searches and search templates that one caller may own, over all repositories.",
            ge=0,
            le=100_000,
        ),
    ] = 500
    max_saved_search_bytes: Annotated[
        int,
        Doc(
            description="Most bytes that the saved searches, the search templates and the stored results of one caller "
            "may take together.",
            ge=0,
            le=1_073_741_824,
        ),
    ] = 4_194_304
    max_stored_results: Annotated[
        int, Doc(description="Most results that one caller may store of one saved search.", ge=1, le=100_000)
    ] = 10_000
    strict_parameters: Annotated[
        bool,
        Doc(description="Whether a query parameter that an address does not know is refused (400), not ignored."),
    ] = False
    cors_origins: Annotated[
        tuple[str, ...],
        Doc(
            description="Origins (`https://app.example.org`) whose pages may read the repository's answers; `*` = "
            "every origin, not together with `cors_credentials`; empty = none."
        ),
    ] = ()
    cors_credentials: Annotated[
        bool, Doc(description="Whether pages of those origins may send cookies and HTTP credentials of the browser.")
    ] = False
    cors_seconds: Annotated[
        int, Doc(description="How long a browser may keep the answer to a preflight, in seconds.", ge=0, le=86_400)
    ] = 600
    max_downloads: Annotated[
        int, Doc(description="Downloads that one caller may have in progress in one process.", ge=1, le=10_000)
    ] = 16
    max_uploads: Annotated[
        int, Doc(description="Uploads of content that one caller may have in progress in one process.", ge=1, le=10_000)
    ] = 32
    max_objects: Annotated[
        int,
        Doc(
            description="Most objects that one user may own, over all repositories; administrators may own more.", ge=0
        ),
    ] = 1_000_000
    max_stored_bytes: Annotated[
        int,
        Doc(
            description="Most bytes of content that one user may own in all repositories; administrators may own more.",
            ge=0,
        ),
    ] = 107_374_182_400
    max_deleted_objects: Annotated[
        int,
        Doc(
            description="Most objects that go with a folder when it is deleted with everything in it.",
            ge=1,
            le=1_000_000,
        ),
    ] = 10_000
    max_copied_objects: Annotated[
        int, Doc(description="Most objects in a folder that is copied with everything in it.", ge=1, le=100_000)
    ] = 1000
    unique_names: Annotated[
        bool,
        Doc(
            description="Whether an object that is made in, renamed in or put into a folder needs a name that nothing "
            "else in it has. A refusal also tells of objects that the caller may not see. Objects that share a "
            "name already keep it."
        ),
    ] = False
    wastebasket_days: Annotated[
        int,
        Doc(
            description="How many days a deleted object can still be restored. 0: a deleted object is gone at once.",
            ge=0,
            le=3650,
        ),
    ] = 0
    max_content_bytes: Annotated[int, Doc(description="Largest content of one object, in bytes.", ge=1)] = 16 * 1024**3
    packed_bytes: Annotated[
        int,
        Doc(
            description="Content of at most so many bytes is appended to a pack that holds many; larger content has a "
            "file of its own. 0 = every content has one. Content that is stored already stays where it is.",
            ge=0,
            le=262_144,
        ),
    ] = 65_536
    content_store: Annotated[
        Literal["files", "s3"],
        Doc(
            description="Where content is kept: `files` = in the data folder, `s3` = in the store of "
            "`[repository.s3]`. `muniment content move` copies it from one to the other."
        ),
    ] = "files"
    stream_check_bytes: Annotated[
        int, Doc(description="Bytes of a download after which the server checks the right to it again.", ge=65_536)
    ] = 4 * 1024**2
    stream_check_seconds: Annotated[
        int,
        Doc(description="Seconds of a download after which the server checks the right to it again.", ge=1, le=3600),
    ] = 5
    max_metadata_bytes: Annotated[
        int, Doc(description="Largest JSON or XML body of an object, ACL or query, in bytes.", ge=1024, le=67_108_864)
    ] = 262_144
    max_acls: Annotated[
        int, Doc(description="Most ACLs that one user may own in a repository; administrators may own more.", ge=0)
    ] = 1000
    max_acl_entries: Annotated[
        int, Doc(description="Most entries that all ACLs of one user in a repository may have together.", ge=0)
    ] = 50_000
    max_relations: Annotated[
        int,
        Doc(
            description="Most relations between objects that one user may have made, over all repositories; "
            "administrators may make more.",
            ge=0,
            le=10_000_000,
        ),
    ] = 10_000
    max_comments: Annotated[
        int,
        Doc(
            description="Most comments and replies that one user may have written, over all repositories; "
            "administrators may write more.",
            ge=0,
            le=10_000_000,
        ),
    ] = 10_000
    max_batch_operations: Annotated[int, Doc(description="Most operations of one batch.", ge=1, le=10_000)] = 200
    max_batch_bytes: Annotated[
        int,
        Doc(
            description="Largest body of a batch, in bytes, and most bytes that the bodies of its answers have "
            "together.",
            ge=1024,
            le=67_108_864,
        ),
    ] = 4_194_304
    batch_seconds: Annotated[
        int, Doc(description="Seconds after which no further operation of a batch begins.", ge=1, le=60)
    ] = 5
    batch_hold_seconds: Annotated[
        float,
        Doc(description="Seconds from the first write of a transactional batch to its rollback (503).", ge=0.01, le=60),
    ] = 0.5
    max_query_depth: Annotated[
        int, Doc(description="Deepest nesting of a query's expressions or parentheses.", ge=1, le=100)
    ] = 20
    max_query_clauses: Annotated[
        int, Doc(description="Most expressions, list values and keywords in one query.", ge=1, le=65_536)
    ] = 1024
    max_facets: Annotated[
        int, Doc(description="Most facet definitions of one search, nested ones included.", ge=1, le=100)
    ] = 20
    max_facet_values: Annotated[
        int, Doc(description="Most values that the facets of one search have together.", ge=10, le=50_000)
    ] = 2000
    extraction_seconds: Annotated[
        int,
        Doc(
            description="Wall-clock and processor time that extracting one file's text may take, in seconds.",
            ge=1,
            le=3600,
        ),
    ] = 60
    extraction_memory_mib: Annotated[
        int,
        Doc(
            description="Address space of the process that extracts text, in MiB. A packed file may unpack to a "
            "quarter of it.",
            ge=256,
            le=65_536,
        ),
    ] = 2048
    extraction_characters: Annotated[
        int, Doc(description="Most characters of one file's text that are kept and indexed.", ge=1000, le=100_000_000)
    ] = 4_000_000
    extraction_depth: Annotated[
        int, Doc(description="Levels of packed files within packed files that are read.", ge=1, le=10)
    ] = 3
    extraction_processes: Annotated[int, Doc(description="Files whose text is extracted at one time.", ge=1, le=64)] = 1
    names: RepositoryNames = RepositoryNames()
    opensearch: OpenSearchOptions = OpenSearchOptions()
    s3: S3Options = S3Options()
    extraction: ExtractionOptions = ExtractionOptions()

    @property
    def offers_search_page(self) -> bool:
        reachable = not self.tokeninfo_url or TOKENINFO_ADDRESS.fullmatch(self.tokeninfo_url) is not None
        return self.search_page and bool(self.search_page_client) and reachable
