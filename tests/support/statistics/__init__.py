"""Operations whose laws are known, and how often tests reject them."""
