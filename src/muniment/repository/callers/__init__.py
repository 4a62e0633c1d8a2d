"""Who calls? What does a request show to prove who sends it, and how is the directory asked whether this proof holds
now?"""
