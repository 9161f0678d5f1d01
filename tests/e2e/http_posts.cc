#include "tests/e2e/http_posts.h"

#include <chrono>

#include "tools/loadgen/http_client.h"

namespace torpor::e2e {
namespace {

constexpr auto kPostPatience = std::chrono::seconds(60);

}  // namespace

std::vector<Reply> PostAll(const std::string& address, const std::vector<Post>& posts) {
  loadgen::HttpClient client(0);
  std::vector<Reply> replies(posts.size());
  std::size_t missing = posts.size();
  const TimePoint give_up = SteadyClock().Now() + kPostPatience;
  for (std::size_t i = 0; i < posts.size(); ++i) {
    client.Post(
        address, posts[i].path, posts[i].body, give_up, [&, i](const loadgen::HttpAnswer& answer) {
          replies[i] = {answer.http_status,
                        answer.status.ok() ? answer.body : std::string(answer.status.message()),
                        answer.headers};
          if (--missing == 0) client.Stop();
        });
  }
  client.Run();
  return replies;
}

}  // namespace torpor::e2e
