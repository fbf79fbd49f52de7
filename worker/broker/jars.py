"""The jars of Apache Kafka, fetched once by Maven into a cache folder, and the Java that runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from worker.broker.cached import cache_base, cached_folder
from worker.broker.errors import BrokerUnavailable

VERSION = "4.3.1"
MINIMUM_JAVA = 17

# Kafka's jars speak the slf4j 1.7 interface and bring no logger: log4j-slf4j-impl, not log4j-slf4j2-impl.
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>anabranch</groupId>
  <artifactId>broker</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>2.25.3</version>
    </dependency>
  </dependencies>
</project>
"""
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_SHOWN = 15  # lines of Maven's complaint


class Installation(NamedTuple):
    """What a node is started with."""

    java: Path
    jars: Path  # the folder


def install(
    version: str = VERSION, *, timeout: float = 900.0, notify: Callable[[str], None] = lambda message: None
) -> Installation:
    """Return Java and the jars, fetched before if need be. Any number of processes may call it at a time.

    Parameters
    ----------
    version : str
        Of `org.apache.kafka:kafka_2.13`.
    timeout : float
        Seconds that Maven may take.
    notify : callable
        Called with a line for a person before something slow.

    Raises
    ------
    BrokerUnavailable
        There is no Java 17 or newer; or the jars are not in the cache yet and Maven is missing or fails.
    """
    java, folder = find_java(), cache_folder() / version

    def fetch(scratch: Path) -> Path:
        notify(f"fetching Apache Kafka {version} with Maven, some 45 MB, once, into {folder}")
        return _fetch(version, scratch, timeout)

    return Installation(java, cached_folder(folder, fetch))


def find_java() -> Path:
    """Return the Java of JAVA_HOME, else of PATH; raise `BrokerUnavailable` where it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    place = f"JAVA_HOME ({home})" if home else "PATH"
    advice = "install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    if found is None:
        raise BrokerUnavailable(f"expected Java {MINIMUM_JAVA} or newer, found no java in {place}; {advice}")
    # 1.8.0_392 was the way to say 8.
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < MINIMUM_JAVA:
        came = version[1] if version else repr(said[:200])
        raise BrokerUnavailable(
            f"expected Java {MINIMUM_JAVA} or newer, got {came} from {found} in {place}; {advice}"
        )
    return Path(found).absolute()


def cache_folder() -> Path:
    """Return where jars are kept, and data that nobody gave another place."""
    return cache_base() / "kafka"


def _fetch(version: str, scratch: Path, timeout: float) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerUnavailable(
            f"expected Maven, to fetch Apache Kafka {version}, found no mvn in PATH; "
            "install it (Debian: apt-get install maven)"
        )
    (scratch / "pom.xml").write_text(_POM.format(version=version), "utf-8")
    command = [maven, "-B", "-ntp", "-q", _GOAL, "-DincludeScope=runtime", "-DoutputDirectory=jars"]
    try:
        subprocess.run(
            command,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise BrokerUnavailable(
            f"expected Maven to fetch Apache Kafka {version} within {timeout:.0f} s, it did not; try again"
        ) from None
    except subprocess.CalledProcessError as error:
        plain = re.sub(r"\x1b\[[\d;]*m", "", error.stdout)  # it colours even what is no terminal
        said = "\n".join(plain.strip().splitlines()[:_SHOWN])
        raise BrokerUnavailable(
            f"expected Maven to fetch Apache Kafka {version}, it ended with code {error.returncode}; "
            f"see to what it said and try again:\n{said}"
        ) from None
    return scratch / "jars"
