"""The parts of which the tables of Publisher are made."""

from sqlalchemy import BigInteger, Column, Integer, MetaData, Text

from servicekit.pg.tables import add_service_tables

metadata = MetaData()
add_service_tables(metadata)


def text_column(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def count_column(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def number_column(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)
