#!/bin/sh
# Three hosts as network namespaces: c with the coordinator, n1 and n2 with devices. Every host has an address of its
# own, which the others know from /etc/hosts, while its own name means 127.0.1.1 at home, as Debian's installer has it,
# and a wire to each of the others; each sees a /dev/shm of its own. The last one's packets take a millisecond where the
# kernel can delay them. Then runs COMMAND on c, with `hosts-cut` in the PATH, which cuts the wire between n1 and n2
# without a sign, and `hosts-away`, which cuts all wires for a while. Ends with COMMAND's status, or with 77 and a line
# that says why where the system does not allow it.
# All of it goes with its first process. In the environment:
#   HOSTS_DEVICES  how many n1 and n2 have each: 4
#   HOSTS_ON_C     how many c has: none
#   HOSTS_BY_NAME  nodes listen where their own names mean, which is 127.0.1.1: where they do by default
#   HOSTS_RATE     of each wire, as in 800mbit: as fast as it goes
#   HOSTS_IPV6     they have IPv6 addresses alone, also of the loopback: IPv4
# `hosts-ssh [-o OPTION]... HOST COMMAND`, also in the PATH, runs a command on n1 or n2 as ssh does, by name or address.
#   unshare -rnmpf --kill-child --mount-proc sh hosts.sh RINGMASTER CONFIGURATION COMMAND...
program=$1 configuration=$2
shift 2

skip() {
  echo "skipped: this system does not let hosts be imitated: $1"
  exit 77
}
try() { problem=$("$@" 2>&1) || skip "$* said $problem"; }

try mount -t tmpfs tmpfs /run
cp "$configuration" /run/configuration || exit 1 # it may lie in a /dev/shm
mkdir /run/netns /run/bin
net=10.9.0. bits=32 own_loopback=127.0.0.1 own_name=127.0.1.1 every=0.0.0.0
[ -z "$HOSTS_IPV6" ] || net=fd00:9:: bits=128 own_loopback=::1 own_name=::1 every=::
address() { case $1 in n1) echo ${net}1 ;; n2) echo ${net}2 ;; c) echo ${net}3 ;; esac; }
for host in n1 n2 c; do
  printf '%s localhost\n' $own_loopback > "/run/hosts-$host"
  for other in n1 n2 c; do
    if [ $other = $host ]; then echo "$own_name $host"; else echo "$(address $other) $other"; fi >> "/run/hosts-$host"
  done
done
own_address() { # HOST INTERFACE
  if [ -z "$HOSTS_IPV6" ]; then
    try ip -n "$1" address add "$(address "$1")/$bits" dev "$2"
  else
    try ip -n "$1" address add "$(address "$1")/$bits" dev "$2" nodad
  fi
}

for host in n1 n2 c; do
  try ip netns add "$host"
  try ip -n "$host" link set lo up
  [ -z "$HOSTS_IPV6" ] || try ip -n "$host" address del 127.0.0.1/8 dev lo
  own_address "$host" lo
done
wire() { # A and B, by way of a bridge, whose end neither of them sees
  try ip link add "w$1$2" type bridge
  try ip link set "w$1$2" up
  for end in "$1 $2" "$2 $1"; do
    from=${end% *} to=${end#* }
    try ip link add "to-$to" netns "$from" type veth peer name "$from-$to"
    try ip link set "$from-$to" master "w$1$2" up
    try ip -n "$from" link set "to-$to" up
    own_address "$from" "to-$to"
    try ip -n "$from" route add "$(address "$to")/$bits" dev "to-$to" src "$(address "$from")"
  done
}
wire n1 n2
wire n1 c
wire n2 c
if [ -n "$HOSTS_RATE" ]; then
  for end in "n1 n2" "n1 c" "n2 n1" "n2 c" "c n1" "c n2"; do
    try ip netns exec "${end% *}" tc qdisc add dev "to-${end#* }" root tbf rate "$HOSTS_RATE" burst 256kb latency 20ms
  done
elif ip netns exec c tc qdisc add dev to-n1 root netem delay 1ms 2> /dev/null; then
  echo "delays: 1 ms"
else
  echo "delays: none, this kernel has no netem"
fi
printf '#!/bin/sh\nexec nsenter --net=/run/outer ip link set wn1n2 down\n' > /run/bin/hosts-cut
cat > /run/bin/hosts-away << 'SCRIPT'
#!/bin/sh
# hosts-away SECONDS: cuts all wires without a sign, and mends them after so long.
wires() { for wire in wn1n2 wn1c wn2c; do nsenter --net=/run/outer ip link set $wire $1 || exit 1; done; }
wires down
sleep "$1"
wires up
SCRIPT
cat > /run/bin/hosts-ssh << 'end'
#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
case ${1#*@} in n1 | *[.:]1) host=n1 ;; *) host=n2 ;; esac
shift
exec nsenter --net=/run/outer ip netns exec $host unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm &&
  mount --bind "/run/hosts-$0" /etc/hosts && exec sh -c "$1"' $host "$*"
end
chmod +x /run/bin/hosts-cut /run/bin/hosts-away /run/bin/hosts-ssh
touch /run/outer
try mount --bind /proc/$$/ns/net /run/outer

become() { # HOST COMMAND...: this shell becomes that command there
  where=$1
  shift
  exec ip netns exec "$where" unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm &&
    mount --bind "/run/hosts-$0" /etc/hosts && exec "$@"' "$where" "$@"
}
become c "$program" coordinator --host $every --port 7077 --conf /run/configuration &
coordinator=$!
until (become c "$program" info --join c:7077) > /dev/null 2>&1; do kill -0 $coordinator || exit 1; done
start_node() { # HOST DEVICES
  become "$1" "$program" node --join c:7077 ${HOSTS_BY_NAME:+--listen-host "$1"} --devices "$2" --name "$1" \
    --conf /run/configuration &
  nodes="$nodes $!"
}
if [ -n "$HOSTS_ON_C" ]; then start_node c "$HOSTS_ON_C"; fi
# The others come to it.
until [ -z "$HOSTS_ON_C" ] || (become c "$program" info --join c:7077 --devices "$HOSTS_ON_C") > /dev/null; do :; done
start_node n1 "${HOSTS_DEVICES:-4}"
start_node n2 "${HOSTS_DEVICES:-4}"
(RINGMASTER_COORDINATOR=c:7077 PATH=$PATH:/run/bin become c "$@")
status=$?
kill $nodes
wait $nodes
exit $status
