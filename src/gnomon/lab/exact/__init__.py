"""Tasks with exact answers: trained on short questions, asked longer ones.

tasks      one function is one task
examples   rows of tokens, and a split in which nothing that is tested is trained on
answers    written by the model itself, and measured in three ways
cell       one model; report: all of them, as a plain table
"""
