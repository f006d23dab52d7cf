"""What commands show people: plain tables and sentences that fit the window, and which pilots of many are shown."""
