"""What became worse from one result to another?"""
