exports.up = (knex) => knex('knex_users').insert({ id: 1 });
exports.down = (knex) => knex('knex_users').where({ id: 1 }).delete();
