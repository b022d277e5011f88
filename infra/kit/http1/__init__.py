"""What both ends of an HTTP/1.1 connection share: the grammar of heads, bytes on their way in, deadlines.

The relay (client end) and httpd (server end) stand on it. Parsing is llhttp's, through httptools.
"""
