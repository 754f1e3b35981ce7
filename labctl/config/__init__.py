"""What the files of a lab may say: strict schemas of protocol, cell, fixture, lab and policy card. Pure: text in,
values out.
"""
