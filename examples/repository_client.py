"""A client of the repository: keep a document, find it, delete it. Usage: repository_client.py path/to/demo.json"""

import json
import ssl
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import httpx

facts = json.loads(Path(sys.argv[1]).read_text())
names = facts["names"]
trust = ssl.create_default_context(cafile=facts["ca_file"])

with httpx.Client(base_url=facts["base_url"], verify=trust, timeout=30) as http:
    granted = http.post(
        "/dirws/login",
        data={
            "grant_type": "password",
            "client_id": facts["client_id"],
            "username": facts["username"],
            "password": facts["password"],
            "scope": "resource:" + facts["resource"]["name"].replace(" ", "+"),
        },
    )
    granted.raise_for_status()
    token = granted.json()["access_token"]
    http.headers["Authorization"] = f"Bearer {token}"
    repository = f"/rest/repositories/{facts['repository']}"

    made = http.post(
        f"{repository}/objects",
        params={"object-name": "charter.txt"},
        content="A charter is a muniment of the oldest kind.",
        headers={"Content-Type": "text/plain"},
    )
    made.raise_for_status()
    print("kept at", made.headers["Location"])

    query = f"""<search xmlns="{names["vocab_namespace"]}">
      <types><type>{names["document_type"]}</type></types>
      <expression-set operator="AND"><expressions>
        <fulltext>{facts["word"]}</fulltext>
        <property-range name="r_full_content_size" operator="BETWEEN"><from>1</from><to>1000000</to></property-range>
      </expressions></expression-set>
    </search>"""
    found = http.post(
        f"{repository}/search",
        params={"include-total": "true", "items-per-page": "5"},
        content=query,
        headers={"Content-Type": "application/xml", "Accept": "application/xml"},
    )
    found.raise_for_status()
    atom = "{http://www.w3.org/2005/Atom}"
    feed = ET.fromstring(found.content)
    print(feed.findtext(f"{{{names['vocab_namespace']}}}total"), "documents hold", repr(facts["word"]))
    for entry in feed.iter(f"{atom}entry"):
        print("-", entry.findtext(f"{atom}title"))

    http.delete(made.headers["Location"]).raise_for_status()
    http.delete(f"/dirws/v1/authentication/oauth/{token}").raise_for_status()
