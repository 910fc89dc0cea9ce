"""Words that a query keeps only when it holds nothing else. Texts are indexed with all of theirs."""

STOP_WORDS = frozenset(
    # A paragraph reads better here than a list of two hundred strings.
    """
    a about after again against am an and any are as at be because been before being below between both but by
    did do does doing down during each for from further had has have having he her here hers herself him himself
    his how i if in into is it its itself just me my myself no nor not of off on once or other our ours ourselves
    out over she should so some such than that the their theirs them themselves then there these they this those through
    to too under until up very was we were what when where which while who whom why will with would you your
    yours yourself yourselves
    arent cant couldnt didnt doesnt dont hadnt hasnt havent hows im isnt ive shouldnt thats theres theyre wasnt
    werent whats whens wheres whos whys wont wouldnt youre youve
    """.split()  # noqa: SIM905
)
"""English, folded, contractions without their apostrophe."""

FUNCTION_CHARACTERS = frozenset("的了是在和有个与及或吗呢什么哪谁怎么样多少几为" + "はがをにのでとへもやかねよ")
"""Chinese and Japanese characters that carry grammar; a term made of nothing else says nothing of the subject."""
