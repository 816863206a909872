"""Runs alembic's migrations on PostgreSQL behind the fence of Holdfast."""
import os

from alembic import context
from sqlalchemy import create_engine, event, pool

engine = create_engine(os.environ["DATABASE_URL"], poolclass=pool.NullPool)

# holdfast run sets these. Without it this is a KeyError: nobody migrates beside the lock.
LEASE = tuple(os.environ[name] for name in ("HOLDFAST_LOCK", "HOLDFAST_TOKEN", "HOLDFAST_LOCK_ID"))


@event.listens_for(engine, "begin")
def assert_lock(connection):
    """The first statement of each transaction: the database refuses a process that is not the newest holder."""
    connection.exec_driver_sql("SELECT holdfast_assert(%s, %s, %s)", LEASE)


with engine.connect() as connection:
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
