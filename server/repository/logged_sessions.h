#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "memory/free_blocks.h"
#include "server/repository/repository.h"
#include "server/repository/session_files.h"
#include "server/repository/spilled_image.h"

// What the next torpord must know of this one's sessions: records of what has happened, and the
// state that they add up to. Plain records.
namespace torpor::server {

// Sessions of a later version are lost with their torpord.
inline constexpr std::uint64_t kSessionLogVersion =
    4;  // 3: without tenants' files; 2: nor spares, strikes; 1: nor images on the disk

// Which of a session's memories a record is about.
enum class MemoryKind : std::uint32_t { kDevice, kHost };

// --- Records ------------------------------------------------------------------------------------

// The first of a log.
struct LogBegun {
  std::uint64_t version = kSessionLogVersion;
  std::uint64_t lives = 0;         // torpords that have had the log, this one included
  std::uint64_t next_session = 1;  // ids from here on were never given out
  // What executors of this torpord are started with: only those started alike are gone on with.
  std::string executors{};

  template <typename V>
  void Visit(V& v) {
    v(version), v(lives), v(next_session), v(executors);
  }
};

// As GpuProcessRan of an executor at place 0. In logs up to version 2.
struct ExecutorRan {
  std::int64_t gpu = 0;
  std::int64_t process_id = 0;
  std::uint64_t start_ticks = 0;  // as ProcessIdentity

  template <typename V>
  void Visit(V& v) {
    v(gpu), v(process_id), v(start_ticks);
  }
};

// A client is about to be told of its session. Sizes are bytes.
struct SessionOpened {
  std::uint64_t session = 0;
  SessionKey key{};
  std::string instance{};  // FullNameOf
  std::uint64_t process_id = 0;
  std::string program{};
  // Where the node's addresses begin, and how a session's are divided.
  std::uint64_t device_base = 0;
  std::uint64_t host_base = 0;
  std::uint64_t chunk_bytes = 0;
  bool is_apart = false;
  std::uint64_t image_bytes = 0;
  std::uint64_t host_arena_bytes = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t address_limit = 0;
  bool replays = false;  // as HelloReply::replays

  SessionFiles::Sizes sizes() const { return {image_bytes, host_arena_bytes, window_bytes}; }

  template <typename V>
  void Visit(V& v) {
    v(session), v(key), v(instance), v(process_id), v(program);
    v(device_base), v(host_base), v(chunk_bytes), v(is_apart);
    v(image_bytes), v(host_arena_bytes), v(window_bytes), v(address_limit), v(replays);
  }
};

// The session has these segments of the node's addresses, and no others. Pairs of offset and bytes.
struct SegmentsHeld {
  std::uint64_t session = 0;
  MemoryKind kind = MemoryKind::kDevice;
  std::vector<std::uint64_t> extents{};

  static SegmentsHeld Of(std::uint64_t session, MemoryKind kind,
                         const std::vector<memory::Block>& segments);

  template <typename V>
  void Visit(V& v) {
    v(session), v(kind), v(extents);
  }
};

struct Allocated {
  std::uint64_t session = 0;
  MemoryKind kind = MemoryKind::kDevice;
  std::uint64_t request = 0;  // the client's
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  template <typename V>
  void Visit(V& v) {
    v(session), v(kind), v(request), v(offset), v(bytes);
  }
};

struct Freed {
  std::uint64_t session = 0;
  MemoryKind kind = MemoryKind::kDevice;
  std::uint64_t request = 0;
  std::uint64_t offset = 0;

  template <typename V>
  void Visit(V& v) {
    v(session), v(kind), v(request), v(offset);
  }
};

// Whether the host's image lacks work without which the session cannot go on. Only of sessions that
// do not replay.
struct WorkUnsaved {
  std::uint64_t session = 0;
  bool is_unsaved = false;

  template <typename V>
  void Visit(V& v) {
    v(session), v(is_unsaved);
  }
};

// The session lives no longer than its torpord.
struct EndsWithTorpord {
  std::uint64_t session = 0;
  std::string why;

  template <typename V>
  void Visit(V& v) {
    v(session), v(why);
  }
};

struct SessionClosed {
  std::uint64_t session = 0;

  template <typename V>
  void Visit(V& v) {
    v(session);
  }
};

// The session waits for its client to come back.
struct ClientAway {
  std::uint64_t session = 0;
  std::int64_t since_ns = 0;  // CLOCK_MONOTONIC; 0: the client is there again

  template <typename V>
  void Visit(V& v) {
    v(session), v(since_ns);
  }
};

// The image is in its spill file, and may have left host memory.
struct ImageSpilled {
  std::uint64_t session = 0;
  std::vector<std::uint64_t> pieces{};  // offset, bytes and hash of each SpilledPiece

  static ImageSpilled Of(std::uint64_t session, const std::vector<SpilledPiece>& pieces);

  template <typename V>
  void Visit(V& v) {
    v(session), v(pieces);
  }
};

// The image is in host memory again, whole.
struct ImageBack {
  std::uint64_t session = 0;

  template <typename V>
  void Visit(V& v) {
    v(session);
  }
};

enum class GpuProcess : std::uint32_t { kExecutor, kSpare, kPoolOwner };

// A process of a GPU. An executor may have sessions' files mapped. A later record of the same
// process replaces the earlier.
struct GpuProcessRan {
  std::int64_t gpu = 0;
  std::int64_t process_id = 0;
  std::uint64_t start_ticks = 0;  // as ProcessIdentity
  GpuProcess role = GpuProcess::kExecutor;
  std::uint32_t place = 0;  // of the two executors of a GPU

  template <typename V>
  void Visit(V& v) {
    v(gpu), v(process_id), v(start_ticks), v(role), v(place);
  }
  bool operator==(const GpuProcessRan&) const = default;
};

// A function's strikes (StrikeRecord), as of the last one.
struct FunctionStruck {
  std::string function{};
  std::uint64_t strikes = 0;
  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC

  template <typename V>
  void Visit(V& v) {
    v(function), v(strikes), v(at_ns);
  }
  bool operator==(const FunctionStruck&) const = default;
};

// Blocks of the session's image may lie in the tenant's file.
struct TenantFileHeld {
  std::uint64_t session = 0;
  std::string tenant{};

  template <typename V>
  void Visit(V& v) {
    v(session), v(tenant);
  }
};

// Append only: the index is the type in the file.
using SessionRecord =
    std::variant<LogBegun, ExecutorRan, SessionOpened, SegmentsHeld, Allocated, Freed, WorkUnsaved,
                 EndsWithTorpord, SessionClosed, ClientAway, ImageSpilled, ImageBack, GpuProcessRan,
                 FunctionStruck, TenantFileHeld>;

// --- State --------------------------------------------------------------------------------------

struct LoggedMemory {
  struct Piece {
    Bytes bytes = 0;
    std::uint64_t request = 0;  // that allocated it
    bool operator==(const Piece&) const = default;
  };
  std::vector<memory::Block> segments;
  std::map<Bytes, Piece> pieces;  // live, by offset

  bool operator==(const LoggedMemory&) const = default;
};

struct LoggedSession {
  // Answers to frees that may not have reached the client; a client waits for fewer.
  static constexpr std::size_t kMaxFrees = 1 << 14;

  SessionOpened opened;
  LoggedMemory device;
  LoggedMemory host;
  std::deque<std::uint64_t> frees;  // the requests, the latest last
  bool is_unsaved = false;
  std::string why_not;                 // it lives no longer than its torpord; empty: it may
  std::int64_t client_away_since = 0;  // as in ClientAway
  std::optional<SpilledImage> spilled;
  std::string tenant;  // as in TenantFileHeld; empty: no block lies in a tenant's file

  LoggedMemory& MemoryOf(MemoryKind kind) { return kind == MemoryKind::kDevice ? device : host; }
};

// The sum of the records of a log.
class LoggedSessions {
 public:
  // Ignores records of unknown sessions, and what makes no sense.
  void Apply(const SessionRecord& record);

  // Returns records that add up to this state; the first is LogBegun.
  std::vector<SessionRecord> Records() const;

  const LogBegun& begun() const { return begun_; }
  // In the order of their latest records.
  const std::vector<GpuProcessRan>& processes() const { return processes_; }
  const std::map<SessionId, LoggedSession>& sessions() const { return sessions_; }
  const std::map<std::string, FunctionStruck>& strikes() const { return strikes_; }
  // Returns null if the session is unknown or closed.
  const LoggedSession* Find(SessionId session) const;

  // Forgets all processes but these.
  void RetainProcesses(std::vector<GpuProcessRan> living) { processes_ = std::move(living); }

 private:
  void Take(const LogBegun& record) { begun_ = record; }
  void Take(const ExecutorRan& record);
  void Take(const GpuProcessRan& record);
  void Take(const SessionOpened& record);
  void Take(const SegmentsHeld& record);
  void Take(const Allocated& record);
  void Take(const Freed& record);
  void Take(const WorkUnsaved& record);
  void Take(const EndsWithTorpord& record);
  void Take(const SessionClosed& record);
  void Take(const ClientAway& record);
  void Take(const ImageSpilled& record);
  void Take(const ImageBack& record);
  void Take(const TenantFileHeld& record);
  void Take(const FunctionStruck& record) { strikes_[record.function] = record; }
  LoggedSession* Mutable(std::uint64_t session);

  LogBegun begun_;
  std::vector<GpuProcessRan> processes_;
  std::map<std::string, FunctionStruck> strikes_;  // by function
  std::map<SessionId, LoggedSession> sessions_;
};

}  // namespace torpor::server
