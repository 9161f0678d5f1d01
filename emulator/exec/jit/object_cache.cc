#include "emulator/exec/jit/object_cache.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/sha256.h"

namespace torpor::emulator {
namespace {

constexpr char kMagic[] = "torpor object 1\n";

// The bytes of an entry: magic, digest of the object, object.
std::string Digest(const char* data, std::size_t bytes) { return ToHex(Sha256(data, bytes)); }

}  // namespace

ObjectCache ObjectCache::FromEnvironment() {
  if (const char* folder = std::getenv("TORPOR_EMULATOR_CACHE_DIR")) return ObjectCache(folder);
  const char* const home = std::getenv("HOME");
  if (home == nullptr) return ObjectCache("");
  return ObjectCache(std::string(home) + "/.cache/torpor/ptx");
}

std::string ObjectCache::PathOf(const std::string& key) const {
  return folder_ + "/" + Digest(key.data(), key.size()) + ".o";
}

// A file is a magic line, the SHA-256 of the object in hexadecimal, and the object.
std::optional<std::vector<char>> ObjectCache::Find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(PathOf(key), std::ios::binary);
  if (!file) return std::nullopt;
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  constexpr std::size_t kDigestBytes = 64;
  constexpr std::size_t kHeaderBytes = sizeof(kMagic) - 1 + kDigestBytes;
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  if (std::memcmp(bytes.data(), kMagic, sizeof(kMagic) - 1) != 0) return std::nullopt;
  std::vector<char> object(bytes.begin() + kHeaderBytes, bytes.end());
  const std::string digest(bytes.begin() + sizeof(kMagic) - 1, bytes.begin() + kHeaderBytes);
  if (digest != Digest(object.data(), object.size())) return std::nullopt;
  return object;
}

void ObjectCache::Insert(const std::string& key, const std::vector<char>& object) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  static std::atomic<unsigned> sequence = 0;
  const std::string path = PathOf(key);
  const std::string temporary =
      path + "." + std::to_string(getpid()) + "." + std::to_string(sequence++);
  {
    std::ofstream file(temporary, std::ios::binary);
    file << kMagic << Digest(object.data(), object.size());
    file.write(object.data(), static_cast<std::streamsize>(object.size()));
    if (!file.flush()) {
      file.close();
      std::filesystem::remove(temporary, error);
      return;
    }
  }
  std::filesystem::rename(temporary, path, error);
  if (error) std::filesystem::remove(temporary, error);
}

}  // namespace torpor::emulator
