"""Who calls? What does a request show to prove it, and how is the directory asked whether this proof holds now?"""
