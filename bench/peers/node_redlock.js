// node_redlock.js PORT PASSWORD CLIENTS MILLISECONDS: prints how many locks of their own so many clients took and gave
// back in a second, with node-redlock on one server.
const Redis = require("ioredis");
const Redlock = require("redlock");

const [port, password, clients, time] = process.argv.slice(2);

async function pairs(lock, prefix, end) {
  let count = 0;
  for (; Date.now() < end; ++count) await (await lock.lock(`${prefix}/${count}`, 30000)).unlock();
  return count;
}

async function main() {
  const connections = Array.from({ length: Number(clients) }, () => new Redis({ host: "127.0.0.1", port: Number(port), password }));
  await Promise.all(connections.map((connection) => connection.ping()));
  const begin = Date.now();
  const end = begin + Number(time);
  const counts = await Promise.all(
    connections.map((connection, i) => pairs(new Redlock([connection]), `redlock/${process.pid}/${i}`, end)),
  );
  console.log(counts.reduce((sum, count) => sum + count, 0) / ((Date.now() - begin) / 1000));
  connections.forEach((connection) => connection.disconnect());
}

main();
