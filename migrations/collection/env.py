"""Run a collection's migrations on the connection, and in the transaction, that `app.stores.migration` hands over."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
