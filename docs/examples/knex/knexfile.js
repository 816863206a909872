// Runs knex's migrations on PostgreSQL behind the fence of Holdfast.
const fs = require('fs');
const path = require('path');

const folder = path.join(__dirname, 'migrations');

// holdfast run sets these. Without it the database refuses each migration: nobody migrates beside the lock.
const lease = ['HOLDFAST_LOCK', 'HOLDFAST_TOKEN', 'HOLDFAST_LOCK_ID'].map((name) => process.env[name] ?? null);

// In the transaction of the migration and before anything of it: refused unless this process is the newest holder.
const fenced = (step) => async (knex) => {
  await knex.raw('SELECT holdfast_assert(?, ?, ?)', lease);
  return step(knex);
};

class FencedMigrations {
  async getMigrations() {
    return fs.readdirSync(folder).filter((file) => file.endsWith('.js')).sort();
  }

  getMigrationName(file) {
    return file;
  }

  async getMigration(file) {
    const migration = require(path.join(folder, file));
    return { ...migration, up: fenced(migration.up), down: fenced(migration.down) };
  }
}

module.exports = {
  client: 'pg',
  connection: process.env.DATABASE_URL,
  migrations: { migrationSource: new FencedMigrations() },
};
