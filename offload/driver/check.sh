#!/bin/sh
# Do the modules that were built here fit the kernel, and do its other modules still fit them?
# usage: check KDIR MODDIR: the kernel's headers and its modules; exit 1 if they must not be installed.
# written by ktls-offload
option=@option@
modules="@modules@"
witness="@witness@"
public="@public@"

kdir=$1 moddir=$2 bad=0
here=$(dirname "$0")
yes() { echo "  ok   $*"; }
no() { echo "  BAD  $*"; bad=1; }
built() { find "$here/drivers" -name "$1.ko" | head -n 1; }
listed() { # the first of the kernel's own modules whose path matches
	[ ! -f "$moddir/modules.dep" ] || sed -n "s|^\(kernel/$1\):.*|$moddir/\1|p" "$moddir/modules.dep" | head -n 1
}
stock() { listed "[^:]*/$1\.ko[^:]*"; }

made=
for module in $modules; do
	new=$(built "$module") old=$(stock "$module")
	if [ -z "$new" ]; then
		[ -z "$old" ] || no "$module was not built, and the kernel has it"
		continue
	fi
	made="$made $module"
	magic=$(modinfo -F vermagic "$new")
	[ -n "$old" ] || old=$(listed '[^:]*')
	if [ -z "$old" ]; then
		yes "$module: vermagic $magic (no module of the kernel to compare it with)"
	elif [ "$magic" = "$(modinfo -F vermagic "$old")" ]; then
		yes "$module: vermagic $magic"
	else
		no "$module: vermagic $magic, and the kernel's is $(modinfo -F vermagic "$old")"
	fi
done

for pair in $witness; do
	new=$(built "${pair%%:*}")
	if [ -n "$new" ] && nm "$new" | grep -qw "${pair#*:}"; then
		yes "${pair%%:*} has ${pair#*:}: built with $option"
	else
		no "${pair%%:*} has no ${pair#*:}: $option did not take"
	fi
done

# exported symbols of these modules, as the kernel's build listed them and as ours does; CRC 0: no modversions
compare() {
	awk -F '\t' -v modules="$made" '
	BEGIN { n = split(modules, list, " "); for (i = 1; i <= n; i++) ours[list[i]] = 1 }
	FNR == NR { crc[$2] = $1; next }
	{ n = split($3, part, "/"); name = part[n] }
	!(name in ours) { next }
	{ total[name]++ }
	$1 !~ /^0x0+$/ { versions = 1 }
	!($2 in crc) { print "gone", name, $2; next }
	crc[$2] != $1 { changed[name]++ }
	END {
		for (name in total) print "exports", name, total[name], changed[name] + 0
		print "versions", versions + 0
	}' "$here/Module.symvers" "$kdir/Module.symvers"
}
found=$(compare)
versions=$(echo "$found" | sed -n 's/^versions //p')

dependents() { # modules that need module $1, less those that were built here
	[ -f "$moddir/modules.dep" ] || return
	grep -E "[ /]$1\.ko" "$moddir/modules.dep" | sed 's/:.*//; s/.*\///; s/\.ko.*//' |
		while read -r name; do case " $made " in *" $name "*) ;; *) echo "$name" ;; esac done
}

echo "$found" | grep -q '^gone' && no "symbols that the kernel's own module exports are missing: $(
	echo "$found" | sed -n 's/^gone [^ ]* //p' | head -n 5 | tr '\n' ' ')"
while read -r word name total changed; do
	[ "$word" = exports ] || continue
	others=$(dependents "$name" | tr '\n' ' ')
	if [ "$versions" = 0 ]; then
		common=$(sed -n 's/^include \(.*\)\/Makefile$/\1/p' "$kdir/Makefile" 2>/dev/null)
		if [ -z "$others" ]; then
			yes "$name: every module that builds on it was built with it (this kernel has no CRCs)"
		elif [ -n "$public" ] && [ -d "${common:-$kdir}/$public" ] &&
			! grep -rqw "$option" "${common:-$kdir}/$public"; then
			yes "$name: no header in $public knows $option, so these need no rebuild: ${others}(this kernel has no CRCs)"
		else
			no "$name: whether ${others}still fit cannot be told: this kernel has no CRCs"
		fi
	elif [ "$changed" = 0 ]; then
		yes "$name: all $total exported symbols keep their CRC${others:+; these need no rebuild: ${others% }}"
	elif [ -z "$others" ]; then
		yes "$name: $changed of $total exported symbols have a new CRC; every module that uses them was built with it"
	else
		no "$name: $changed of $total exported symbols have a new CRC: ${others}would be refused"
	fi
done <<END
$found
END
exit $bad
