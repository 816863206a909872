#!/usr/bin/env bash
# Prints the SBOM of a build on this machine: SPDX 2.3, JSON. Versions are those of the installed Debian packages.
# usage: scripts/sbom.sh VERSION COMMIT static|dynamic   (how the command is linked)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$1 commit=$2 command=$3
created=$(date --utc --date="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}" +%Y-%m-%dT%H:%M:%SZ)

package() { # ID NAME VERSION LICENSE HOME
  printf '    {"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "licenseConcluded": "%s", "licenseDeclared": "%s", "copyrightText": "NOASSERTION", "downloadLocation": "%s", "filesAnalyzed": false}' "$1" "$2" "$3" "$4" "$4" "$5"
}
relationship() { # FROM TYPE TO
  printf '    {"spdxElementId": "SPDXRef-%s", "relationshipType": "%s", "relatedSpdxElement": "SPDXRef-%s"}' "$1" "$2" "$3"
}

packages=$(package holdfast holdfast "$version" Apache-2.0 NOASSERTION)
relationships=$(relationship DOCUMENT DESCRIBES holdfast)
while IFS=$'\t' read -r name license debian home linked _; do
  id=${name//[^A-Za-z0-9.-]/-}
  # The version of the sources, which every package of them has.
  found=$(dpkg-query --show --showformat='${source:Version}' "$debian" 2>/dev/null || echo NOASSERTION)
  packages+=$',\n'$(package "$id" "$name" "${found:-NOASSERTION}" "$license" "$home")
  for kind in ${linked//,/ }; do
    case $kind in
      static) [[ $command == dynamic ]] || relationships+=$',\n'$(relationship holdfast STATIC_LINK "$id") ;;
      headers) relationships+=$',\n'$(relationship holdfast STATIC_LINK "$id") ;;
      shared) relationships+=$',\n'$(relationship holdfast DYNAMIC_LINK "$id") ;;
    esac
  done
done < <(grep -v '^#' packaging/third_party.tsv)

cat <<END
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "holdfast-$version",
  "documentNamespace": "https://spdx.org/spdxdocs/holdfast-$version-${commit:-unknown}",
  "creationInfo": {"created": "$created", "creators": ["Tool: scripts/sbom.sh"]},
  "packages": [
$packages
  ],
  "relationships": [
$relationships
  ]
}
END
