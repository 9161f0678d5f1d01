#include "tools/probe/report.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace torpor::probe {
namespace {

using Json = nlohmann::ordered_json;

// One write a line: the reader sees whole lines, or none.
void WriteLine(int fd, const Json& record) {
  const std::string line =
      record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
}

}  // namespace

void Report::Numbers(const std::string& name, const std::string& units,
                     const std::vector<double>& values) {
  WriteLine(
      fd_,
      Json{{"name", item_ + "/" + name}, {"values", values}, {"units", units}, {"error", nullptr}});
}

void Report::Texts(const std::string& name, const std::vector<std::string>& values) {
  WriteLine(
      fd_,
      Json{
          {"name", item_ + "/" + name}, {"values", values}, {"units", "text"}, {"error", nullptr}});
}

void Report::Failed(const std::string& name, const std::string& error) {
  WriteLine(fd_, Json{{"name", item_ + "/" + name},
                      {"values", Json::array()},
                      {"units", ""},
                      {"error", error}});
}

}  // namespace torpor::probe
