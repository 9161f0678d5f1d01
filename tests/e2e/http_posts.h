#pragma once

#include <map>
#include <string>
#include <vector>

namespace torpor::e2e {

struct Post {
  std::string path;
  std::string body;
};

struct Reply {
  int status = 0;  // 0: none, `body` says why
  std::string body;
  std::map<std::string, std::string> headers;  // names in lower case
};

// Sends all to the server at `address` (host:port) at the same time; the replies come in the
// order of the posts.
std::vector<Reply> PostAll(const std::string& address, const std::vector<Post>& posts);

}  // namespace torpor::e2e
