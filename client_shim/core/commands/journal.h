#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// The commands that create and configure a session's live objects, kept for executors that lack the
// objects or their latest settings. Every change has a version; an executor's knowledge is the
// version of the last change sent. Not thread-safe.
class Journal {
 public:
  using Sink = std::function<void(const Command&)>;

  void Create(std::uint64_t handle, const Command& create);
  // A later setting with the same call id and key replaces the earlier one. False for an unknown
  // handle.
  bool Configure(std::uint64_t handle, const Command& setting, std::uint64_t key);
  // Keeps `destroy`, unless without call id, until every executor was told; see Trim. False for an
  // unknown handle.
  bool Destroy(std::uint64_t handle, const Command& destroy);
  bool IsLive(std::uint64_t handle) const { return created_at_.contains(handle); }

  std::uint64_t version() const { return version_; }
  // Passes to `sink` all commands that an executor with knowledge up to version `known` lacks:
  // objects in the order of creation, settings in the order of setting, then destructions.
  void Replay(std::uint64_t known, const Sink& sink) const;
  // Forgets the destructions up to version `known`, which every executor knows.
  void Trim(std::uint64_t known);

 private:
  struct Stored {
    std::uint32_t call_id = 0;
    std::vector<std::uint8_t> fields;

    explicit Stored(const Command& command)
        : call_id(command.call_id), fields(command.fields.begin(), command.fields.end()) {}
    Command view() const { return {call_id, fields}; }
  };
  struct Setting {
    std::uint64_t version = 0;
    std::uint64_t key = 0;
    Stored command;
  };
  struct Object {
    Stored create;
    std::vector<Setting> settings;
  };
  struct Destroyed {
    std::uint64_t version = 0;
    std::uint64_t created_at = 0;
    Stored command;
  };

  std::uint64_t version_ = 0;
  std::map<std::uint64_t, Object> objects_;  // by the version of their creation
  std::unordered_map<std::uint64_t, std::uint64_t> created_at_;
  std::vector<Destroyed> destroyed_;
};

}  // namespace torpor::shim
