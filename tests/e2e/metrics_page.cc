#include "tests/e2e/metrics_page.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "base/unique_fd.h"

namespace torpor::e2e {
namespace {

void Check(bool is_right, const char* what) {
  if (is_right) return;
  std::perror(what);
  std::exit(1);
}

UniqueFd ConnectTo(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int resolved = getaddrinfo(address.substr(0, colon).c_str(),
                                   address.substr(colon + 1).c_str(), &hints, &found);
  Check(resolved == 0, "resolving the server's address");
  UniqueFd connection(socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
  const int connected = connect(connection.get(), found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  Check(connected == 0, "connecting to the server's address");
  return connection;
}

}  // namespace

std::string ReadPage(const std::string& address, const std::string& path) {
  const UniqueFd connection = ConnectTo(address);
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: torpor\r\nConnection: close\r\n\r\n";
  Check(write(connection.get(), request.data(), request.size()) ==
            static_cast<ssize_t>(request.size()),
        "asking for a page");
  std::string page;
  char buffer[4096];
  ssize_t size = 0;
  while ((size = read(connection.get(), buffer, sizeof(buffer))) > 0) {
    page.append(buffer, static_cast<std::size_t>(size));
  }
  Check(size == 0, "reading a page");
  return page;
}

std::string ReadMetrics(const std::string& address) { return ReadPage(address, "/metrics"); }

double ValueOf(const std::string& page, const std::string& metric,
               const std::vector<std::string>& labels) {
  double sum = 0;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const bool is_of_metric = line.starts_with(metric + "{") || line.starts_with(metric + " ");
    const bool has_labels = std::ranges::all_of(
        labels, [&](const std::string& label) { return line.find(label) != std::string::npos; });
    if (is_of_metric && has_labels) sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

std::map<std::string, double> ValuesBy(const std::string& page, const std::string& metric,
                                       const std::string& label) {
  std::map<std::string, double> values;
  const std::string begin = label + "=\"";
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(begin);
    if (!line.starts_with(metric + "{") || at == std::string::npos) continue;
    const std::size_t value = at + begin.size();
    values[line.substr(value, line.find('"', value) - value)] =
        std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return values;
}

}  // namespace torpor::e2e
