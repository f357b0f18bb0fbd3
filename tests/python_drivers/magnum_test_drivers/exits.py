"""A package that ends the interpreter while it is imported, or never ends its import."""
import os
import sys
import time

if os.environ.get('MAGNUM_TEST_ENDLESS_IMPORT'):
    while True:
        time.sleep(0.1)
sys.exit('this package wants another machine')
