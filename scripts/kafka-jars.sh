#!/usr/bin/env bash
# Make .kafka/jars hold exactly what lib/wanbench/kafka/pom.xml pins, by Maven, each file checked against
# lib/wanbench/kafka/jars.sha256. Takes no time when that is so already. Ends with 0 even if it cannot be done: then
# it says why, and only what needs Kafka is missing.
set -u
cd "$(dirname "$0")/.."
pom=lib/wanbench/kafka/pom.xml
sums=lib/wanbench/kafka/jars.sha256
folder=.kafka
stamp=$folder/stamp

wanted_stamp() { cksum $pom $sums; }
if [ -f $stamp ] && [ "$(cat $stamp)" = "$(wanted_stamp)" ]; then
    exit 0
fi
command -v mvn >/dev/null 2>&1 || {
    echo "Maven is missing, so Kafka was not fetched: experiments with Kafka cannot run here." >&2
    exit 0
}
echo "Fetching Kafka by Maven" >&2
rm -rf $folder/new && mkdir -p $folder/new
if ! mvn --quiet --batch-mode --file $pom dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$PWD/$folder/new" </dev/null >$folder/maven.log 2>&1; then
    echo "Maven could not fetch Kafka, so experiments with Kafka cannot run here. Its last words:" >&2
    tail -n 5 $folder/maven.log >&2
    exit 0
fi
if ! (cd $folder/new && sha256sum --quiet --strict --check "../../$sums") >&2; then
    echo "What Maven fetched is not what $sums lists; nothing was installed." >&2
    exit 0
fi
rm -rf $folder/jars && mv $folder/new $folder/jars
wanted_stamp >$stamp
