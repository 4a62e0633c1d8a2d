"""The tests: a folder for each kind, and few builders of worlds that all of them share.

Kinds: ``unit`` (one room, no network), ``contract`` (what databases, engines, stores and sockets must do),
``interface`` (the wire, clause by clause), ``console`` (pages), ``rights`` (rights that end during a request),
``properties`` (laws on generated input), ``corpus`` (searches with known answers), ``peers`` (other people's software),
``e2e`` (processes), ``campaign`` (the long tests), ``bench`` (the page of benchmarks), ``house`` (this code's rules).

Builders, from the smallest world to the largest. A test takes the smallest that shows what it asserts.

- ``unit/directory/office.py``, fixture ``office``: a directory in a database, for its decisions.
- ``shelf.py``, fixture ``shelf``: a repository with an index, for its decisions; ``Shelf.context`` puts it behind its
  addresses. ``unit/repository/shelf.py`` has a content store and no index; below that folder it is ``shelf``.
- ``scenes.py``, fixtures ``world`` and ``site``: a data folder with people, a client, a resource and a repository, and
  the whole application over it in this process. ``console/conftest.py`` has a browser's view of a directory alone.
- ``e2e/processes.py``: ``ServedHouse`` is such a data folder with a real server; ``Server`` serves any data folder.
- ``e2e/pages.py`` runs the commands that a page of the docs prints. ``environments.py`` installs programs of others
  that cannot live in our environment.
- ``unit/cli/test_commands.py``: ``Muniment`` runs commands on a data folder in this process.
"""
