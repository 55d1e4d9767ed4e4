#!/usr/bin/env bash
# Make .kafka/jars hold exactly what lib/wanbench/measure/kafka/pom.xml pins, by Maven, each file checked against
# lib/wanbench/measure/kafka/jars.sha256; and .kafka/broker.jsa the archive of classes with which brokers start sooner. Takes
# almost no time when that is so already. Ends with 0 even if it cannot be done: then it says why, and only what needs
# Kafka is missing. `scripts/kafka-jars.sh 4.4.0` does the same in .kafka/4.4.0, by the hashes in jars-4.4.0.sha256, for
# systems with that `kafka_version`.
set -u
cd "$(dirname "$0")/.."
pom=lib/wanbench/measure/kafka/pom.xml
sums=lib/wanbench/measure/kafka/jars${1:+-$1}.sha256
folder=.kafka${1:+/$1}
stamp=$folder/stamp
archive=$folder/broker.jsa
archive_stamp=$folder/archive-stamp

same() { # a stamp and what it should say
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

fetch() { # what the stamp will say, and perhaps a version
    command -v mvn >/dev/null 2>&1 || {
        echo "Maven is missing, so Kafka was not fetched: experiments with Kafka cannot run here." >&2
        return 1
    }
    [ -f "$sums" ] || {
        echo "There is no $sums, so this version of Kafka cannot be checked and was not fetched." >&2
        return 1
    }
    echo "Fetching Kafka by Maven" >&2
    rm -rf $folder/new && mkdir -p $folder/new
    if ! mvn --quiet --batch-mode --file $pom ${2:+-Dkafka.version=$2} dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$PWD/$folder/new" </dev/null >$folder/maven.log 2>&1; then
        echo "Maven could not fetch Kafka, so experiments with Kafka cannot run here. Its last output:" >&2
        tail -n 5 $folder/maven.log >&2
        return 1
    fi
    if ! (cd $folder/new && sha256sum --quiet --strict --check "$OLDPWD/$sums") >&2 ||
        [ "$(find $folder/new -type f | wc -l)" -ne "$(wc -l <"$sums")" ]; then
        echo "What Maven fetched is not what $sums lists; nothing was installed." >&2
        return 1
    fi
    rm -rf $folder/jars $archive $archive_stamp && mv $folder/new $folder/jars
    echo "$1" >$stamp
}

wanted=$(cksum $pom "$sums")
{ [ -d $folder/jars ] && same $stamp "$wanted"; } || fetch "$wanted" "$@" || exit 0

# The archive belongs to these jars and this Java. Whether it can be made is tried once.
command -v java >/dev/null 2>&1 && [ -x .venv/bin/python ] || exit 0
wanted="$wanted
$(java -version 2>&1)"
same $archive_stamp "$wanted" && exit 0
echo "Preparing a quick start of Kafka" >&2
rm -f $archive
WANBENCH_KAFKA=$PWD/$folder/jars .venv/bin/python -P scripts/kafka_jars.py archive
echo "$wanted" >$archive_stamp
exit 0
