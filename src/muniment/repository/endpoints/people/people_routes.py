"""The addresses of users and groups.

Source: docs/interface.md, ours 9.
"""

from muniment.repository.endpoints import parameters
from muniment.repository.endpoints.context import RepositoryContext
from muniment.repository.endpoints.documents import Documents, ObjectDocument, PersonDocument
from muniment.repository.endpoints.operations import BELOW, UNCHANGED, Addresses, answer_of, listing
from muniment.repository.endpoints.people import people, people_changes
from muniment.repository.endpoints.people.people_changes import MemberReference, PersonBody
from muniment.repository.people import Kind
from muniment.web.addresses import Address, AnswerDescription, Operation


def addresses(wire: Documents) -> Addresses:
    """List the addresses."""

    def created(kind: Kind) -> AnswerDescription:
        return AnswerDescription(201, f"The {kind}.", wire.thing(PersonDocument, kind), (parameters.LOCATION,))

    def single(kind: Kind) -> Address[RepositoryContext]:
        answers = (answer_of(f"The {kind}.", wire.thing(PersonDocument, kind)),)
        reading = Operation(people.reader(kind), f"Show a {kind} whom the repository lets in.", answers=answers)
        changing = Operation(
            people_changes.changer(kind),
            f"Change a {kind} of the directory. Only its administrators may.",
            body=wire.thing(PersonBody, kind),
            answers=answers,
        )
        removing = Operation(
            people_changes.remover(kind),
            f"Remove a {kind} from the directory. Only its administrators may.",
            answers=(AnswerDescription(204, f"The {kind} is gone."),),
        )
        operations = {"GET": reading, "POST": changing, "DELETE": removing}
        return Address(f"{BELOW}/{kind}s/{{person}}", operations, people_changes.TABLE)

    def every(kind: Kind) -> Address[RepositoryContext]:
        reading = listing(wire, people.lister(kind), f"List the {kind}s whom the repository lets in.")
        making = Operation(
            people_changes.maker(kind),
            f"Make a {kind} in the directory. Only its administrators may.",
            body=wire.thing(PersonBody, kind),
            answers=(created(kind),),
        )
        return Address(f"{BELOW}/{kind}s", {"GET": reading, "POST": making}, people_changes.TABLE)

    def members(kind: Kind) -> Address[RepositoryContext]:
        reading = listing(wire, people.lister(kind, of_group=True), f"List the {kind}s directly in a group.")
        adding = Operation(
            people_changes.member_adder(kind),
            f"Put a {kind} into a group. Only administrators of the directory may.",
            body=wire.thing(MemberReference, kind),
            answers=(created(kind),),
        )
        return Address(f"{BELOW}/groups/{{person}}/{kind}s", {"GET": reading, "POST": adding}, people_changes.TABLE)

    def membership(kind: Kind) -> Address[RepositoryContext]:
        answers = (answer_of(f"The {kind}.", wire.thing(PersonDocument, kind)),)
        reading = Operation(people.reader(kind, of_group=True), f"Show a {kind} directly in a group.", answers=answers)
        removing = Operation(
            people_changes.member_remover(kind),
            f"Take a {kind} out of a group. Only administrators of the directory may.",
            answers=(AnswerDescription(204, f"The {kind} is not directly in the group any more."),),
        )
        operations = {"GET": reading, "DELETE": removing}
        return Address(f"{BELOW}/groups/{{person}}/{kind}s/{{member}}", operations, people_changes.TABLE)

    current = Operation(
        people.current_user,
        "Show the user who asks.",
        answers=(answer_of("The user.", wire.thing(PersonDocument, "user")),),
    )
    home_answer = answer_of("The cabinet.", wire.thing(ObjectDocument, "cabinet"))
    home = Operation(
        people.home,
        "Show the cabinet that is a user's home.",
        parameters=(*parameters.SHOWING, parameters.IF_NONE_MATCH),
        refused=parameters.SHOWING_REFUSED,
        answers=(
            AnswerDescription(200, home_answer.meaning, home_answer.content, (parameters.ETAG,)),
            UNCHANGED,
        ),
    )
    return (
        every("user"),
        every("group"),
        members("user"),
        members("group"),
        membership("user"),
        membership("group"),
        Address(f"{BELOW}/users/{{person}}/home", {"GET": home}, people.HOME),
        single("user"),
        single("group"),
        Address(f"{BELOW}/currentuser", {"GET": current}, people.TABLE),
    )
