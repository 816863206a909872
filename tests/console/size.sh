#!/usr/bin/env bash
# Fails if the files of a folder, each compressed by gzip, have more bytes than allowed.
# usage: size.sh MOST FOLDER
set -euo pipefail
sum=0
for file in "$2"/*; do
  size=$(gzip -9c "$file" | wc -c)
  printf '%8d %s\n' "$size" "${file##*/}"
  sum=$((sum + size))
done
echo "$sum bytes of at most $1"
((sum > 0 && sum <= $1))
