"""How nodes live: as processes with sockets between them and one that watches, or in one loop under a manual clock."""
