exports.up = (knex) => knex.schema.createTable('knex_users', (table) => table.integer('id').primary());
exports.down = (knex) => knex.schema.dropTable('knex_users');
