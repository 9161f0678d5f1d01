#include <cstdint>
#include <cstdlib>
#include <vector>

#include "proto/wire/control_messages.h"
#include "server/repository/session_log.h"

namespace torpor::server {
namespace {

std::vector<std::uint8_t> FileOf(const LoggedSessions& state) {
  std::vector<std::uint8_t> bytes;
  for (const SessionRecord& record : state.Records()) {
    const std::vector<std::uint8_t> entry = LogEntryOf(record);
    bytes.insert(bytes.end(), entry.begin(), entry.end());
  }
  return bytes;
}

}  // namespace
}  // namespace torpor::server

// Whatever a torpord finds, what it writes down anew says the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::server;
  const LoggedSessions state = ReadSessionLog({data, size});
  const std::vector<std::uint8_t> written = FileOf(state);
  const LoggedSessions read = ReadSessionLog(written);
  const bool is_ours = state.begun().version == kSessionLogVersion;
  if (is_ours && FileOf(read) != written) std::abort();
  // A record by itself, too: random bytes seldom have the hash of an entry.
  SessionRecord record;
  if (!torpor::wire::DecodeMessage({data, size}, record)) return 0;
  LoggedSessions one = read;
  one.Apply(record);
  if (one.begun().version == kSessionLogVersion &&
      FileOf(ReadSessionLog(FileOf(one))) != FileOf(one)) {
    std::abort();
  }
  return 0;
}
