"""The tests: a folder for each kind, and three builders of worlds that all of them share.

Kinds: ``unit`` (one room, no network), ``contract`` (what databases, engines, stores and sockets must do),
``interface`` (the wire, clause by clause), ``console`` (pages), ``rights`` (rights that end during a request),
``properties`` (laws on generated input), ``corpus`` (searches with known answers), ``peers`` (other people's software),
``e2e`` (processes), ``campaign`` (the long tests), ``bench`` (the page of benchmarks and judged sets), ``house`` (this
code's rules).

Builders. A test takes the smallest that shows what it asserts.

- ``office.py``, fixture ``office``: a directory alone, for its decisions. ``console/conftest.py``, fixture ``scene``,
  puts an office behind its addresses and gives it a browser.
- ``shelf.py``, fixture ``shelf``: a repository alone, for its decisions. Its index is made when a test asks for it;
  ``Shelf.context`` puts it behind its addresses.
- ``scenes.py``, fixture ``world``: a data folder with people, a client, a resource and a repository. A test reaches it
  as a ``Site`` in this process (fixture ``site``), as ``Served`` on a socket, or as the ``ServedHouse`` of
  ``e2e/processes.py`` in processes of its own.

Tests of commands begin with the data folder that ``muniment init`` makes: the runner of commands in this process is
``unit/cli/test_commands.py``'s ``Muniment``, that in a process is ``e2e/processes.py``'s ``muniment``.

``e2e/pages.py`` runs the commands that a page of the docs prints. ``environments.py`` installs programs of others that
cannot live in our environment, those in JavaScript with the Node.js of ``node.lock``. ``s3.py`` builds a store that
speaks S3 with Go, and starts it; fixture ``s3``. ``tika.py`` starts a Tika server that Maven fetches, or a stand-in
that shows its faults.
"""
