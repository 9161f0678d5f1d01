#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// The session's live objects: how each is created and configured, so that an executor that has
// not seen them, or not their latest settings, can be told. Every change has a version; an
// executor's knowledge is the version up to which it was told. Not thread-safe.
class Journal {
 public:
  using Sink = std::function<void(const Command&)>;

  void Create(std::uint64_t handle, const Command& create);
  // A later setting with the same call id and key replaces the earlier one. False: no such handle.
  bool Configure(std::uint64_t handle, const Command& setting, std::uint64_t key);
  // `destroy`, unless it has no call id, is kept until every executor has been told, see Trim.
  // False: no such handle.
  bool Destroy(std::uint64_t handle, const Command& destroy);
  bool IsLive(std::uint64_t handle) const { return created_at_.contains(handle); }

  std::uint64_t version() const { return version_; }
  // Sends what an executor that knows everything up to `known` lacks: objects in the order of
  // their creation, then settings in theirs, then what it must destroy.
  void Replay(std::uint64_t known, const Sink& sink) const;
  // Forgets destroyed objects that every executor from `known` on has been told of.
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
