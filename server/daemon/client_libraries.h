#pragma once

#include <string>

namespace torpor::server {

// Returns the folder of the client libraries: ../lib/torpor/client from the running program.
std::string ClientLibraryDirectory();

// Returns the LD_PRELOAD by which a program gets the folder's libraries, whatever else the program
// says: LD_LIBRARY_PATH alone loses against the DT_RPATH of programs like the toolkit's samples.
std::string PreloadOf(const std::string& client_dir);

// Joins two lists of paths by a colon; either may be empty.
std::string Prepended(const std::string& first, const std::string& rest);

}  // namespace torpor::server
