"""What is one generation: an index of the cluster, of one repository, in a format and languages?"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from muniment.ground.clock import SECOND, Instant
from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.analysis import compounds
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.compounds import Compounds
from muniment.repository.search.index.contract import OtherFormat
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.opensearch.client import Cluster, ClusterAway, Foreign, Missing, Refused


class About(msgspec.Struct, frozen=True):
    """What stands beside the mapping; ``compounds`` is the version of the rules, or 0."""

    owner: str
    repository: int
    format: int
    language: str
    others: tuple[str, ...] = ()
    compounds: int = 0

    @property
    def languages(self) -> str:
        return " and ".join((self.language, *self.others))

    @property
    def compound_languages(self) -> list[str]:
        return [each for each in (self.language, *self.others) if self.compounds and each in compounds.CODES]


class Site(NamedTuple):
    """Where the indexes of one repository are; ``owner`` is a name that no other installation has."""

    cluster: Cluster
    options: OpenSearchOptions
    repository: int
    owner: str
    clock: Callable[[], Instant]

    @property
    def alias(self) -> str:
        """The name of the current generation."""
        return f"{self.options.prefix}-{self.repository}"

    def index_of(self, generation: str) -> str:
        return f"{self.alias}-{generation}"

    def written_as(self, generation: str) -> str:
        """Writers use this alias: when the index is gone, so is the alias, and no bulk makes an index by itself."""
        return f"{self.index_of(generation)}.w"

    def generation(self, index: str) -> str:
        return index.removeprefix(f"{self.alias}-")

    def about(self, index: str) -> tuple[About, Mapping[str, Any]]:
        """Return the mapping, too. Raises Missing, Foreign, and OtherFormat, which is ours."""
        mapping = self.cluster.get(f"/{index}/_mapping")[index]["mappings"]
        try:
            about = msgspec.convert(mapping.get("_meta"), About)
        except msgspec.ValidationError as error:
            raise Foreign(f"The index {index!r} was not made by this installation.") from error
        if (about.owner, about.repository) != (self.owner, self.repository):
            raise Foreign(f"The index {index!r} belongs to another installation or repository.")
        if about.format != fields.FORMAT:
            raise OtherFormat(f"The repository's index is of format {about.format}, made by another release.")
        return about, mapping

    def check_owner(self, index: str) -> None:
        """Raises Missing, Foreign."""
        with suppress(OtherFormat):
            self.about(index)

    def note_former(self, generation: str) -> None:
        """Searches that began before may go on: the sweep waits for them. Raises Missing, Foreign."""
        self.check_owner(self.index_of(generation))
        path = f"/{self.written_as(generation)}/_doc/{fields.FORMER}"
        self.cluster.ask("PUT", path, {"at": self.clock()}, {"require_alias": "true"})

    def last_used(self, index: str) -> Instant:
        """Say when it was made, written, or current."""
        settings = self.cluster.get(f"/{index}/_settings/index.creation_date")[index]["settings"]["index"]
        times = [int(settings["creation_date"]) * SECOND // 1000]
        for each in (fields.POSITION, fields.FORMER):
            with suppress(Missing):
                times.append(int(self.cluster.get(f"/{index}/_doc/{each}")["_source"]["at"]))
        return max(times)

    def make(self, generation: str, about: About) -> None:
        """Make an empty generation, unless there is one."""
        index = self.index_of(generation)
        body = fields.index_body(self.options, msgspec.to_builtins(about), self.written_as(generation))
        try:
            self.cluster.ask("PUT", f"/{index}", body)
        except Refused as refused:
            if "resource_already_exists" in str(refused):
                return
            raise ClusterAway(f"The index cannot be made. {refused}") from refused
        for language in about.compound_languages:
            learned = {fields.BLOB: compounds.learn(language).text()}
            self.cluster.ask("PUT", f"/{index}/_doc/compounds-{language}", learned)

    def analyser(self, index: str, about: About, stop_words: Collection[str] = ()) -> Analyser:
        """Raises IndexUnavailable if what was learned of compounds is lacking."""
        learned = dict[str, Compounds]()
        for language in about.compound_languages:
            try:
                stored = self.cluster.get(f"/{index}/_doc/compounds-{language}")["_source"][fields.BLOB]
            except Missing as error:
                raise IndexUnavailable("The repository's index is incomplete: run 'muniment index rebuild'.") from error
            learned[language] = Compounds.of_text(stored)
        return Analyser(about.language, stop_words, others=about.others, compounds=learned)
