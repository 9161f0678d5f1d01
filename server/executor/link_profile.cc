#include "server/executor/link_profile.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "base/uuid.h"
#include "server/executor/swap_options.h"

namespace torpor::executor {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kMostFileBytes = 64 * kKiB;
constexpr std::size_t kMostPoints = 64;
constexpr double kMostRate = 1e15;  // bytes a second

// How long an executor waits for others that measure, and how often it looks.
constexpr Duration kTurnPatience = std::chrono::seconds(3);
constexpr Duration kTurnLook = std::chrono::milliseconds(10);

absl::Status NoProfile(std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a link's profile: ", std::string(why)));
}

absl::StatusOr<memory::BandwidthPoint> DecodePoint(const Json& pair) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
      !pair[1].is_number()) {
    return NoProfile("a point of the curve is a size and a rate");
  }
  const memory::BandwidthPoint point{pair[0].get<Bytes>(), pair[1].get<double>()};
  const bool is_sane = point.copy_bytes >= kLeastGroupBytes && point.copy_bytes <= kGiB &&
                       std::isfinite(point.bytes_per_second) && point.bytes_per_second > 0 &&
                       point.bytes_per_second <= kMostRate;
  if (!is_sane) return NoProfile("a point of the curve is out of range");
  return point;
}

// The driver's calls that measuring makes, and what they leave behind.
class Measurement {
 public:
  Measurement(const Device& device, Bytes bytes) : device_(device), bytes_(bytes) {}
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  absl::Status Prepare();
  // So many copies of that size, one after another, each with an event behind it as groups have it.
  absl::StatusOr<Duration> Copy(Bytes bytes, std::size_t copies);

 private:
  absl::Status Check(CUresult result) const { return device_.Status(result, "measuring the link"); }

  const Device& device_;
  const Bytes bytes_;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr address_ = 0;
  bool is_mapped_ = false;
  void* host_ = nullptr;
};

Measurement::~Measurement() {
  const CudaDriver& driver = device_.driver();
  if (is_mapped_) driver.MemUnmap(address_, bytes_);
  if (address_ != 0) driver.MemAddressFree(address_, bytes_);
  if (host_ != nullptr) driver.MemFreeHost(host_);
  if (event_ != nullptr) driver.EventDestroy(event_);
  if (stream_ != nullptr) driver.StreamDestroy(stream_);
}

absl::Status Measurement::Prepare() {
  const CudaDriver& driver = device_.driver();
  TORPOR_ASSIGN_OR_RETURN(stream_, device_.CreateStream());
  TORPOR_RETURN_IF_ERROR(Check(driver.EventCreate(&event_, CU_EVENT_DISABLE_TIMING)));
  TORPOR_RETURN_IF_ERROR(Check(driver.MemHostAlloc(&host_, bytes_, 0)));
  std::memset(host_, 1, bytes_);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = device_.location();
  CUmemGenericAllocationHandle handle = 0;
  TORPOR_RETURN_IF_ERROR(Check(driver.MemAddressReserve(&address_, bytes_, 0, 0, 0)));
  TORPOR_RETURN_IF_ERROR(Check(driver.MemCreate(&handle, bytes_, &properties, 0)));
  const CUresult mapped = driver.MemMap(address_, bytes_, 0, handle, 0);
  driver.MemRelease(handle);
  TORPOR_RETURN_IF_ERROR(Check(mapped));
  is_mapped_ = true;
  const CUmemAccessDesc access{device_.location(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  TORPOR_RETURN_IF_ERROR(Check(driver.MemSetAccess(address_, bytes_, &access, 1)));
  return Copy(kLeastGroupBytes, 1).status();  // whatever happens once happens now
}

absl::StatusOr<Duration> Measurement::Copy(Bytes bytes, std::size_t copies) {
  const CudaDriver& driver = device_.driver();
  const TimePoint begin = SteadyClock().Now();
  for (std::size_t i = 0; i < copies; ++i) {
    // Not the same bytes again: a cache would serve them.
    const Bytes at = bytes * (i % (bytes_ / bytes));
    TORPOR_RETURN_IF_ERROR(Check(driver.MemcpyHtoDAsync(
        address_ + at, static_cast<const char*>(host_) + at, bytes, stream_)));
    TORPOR_RETURN_IF_ERROR(Check(driver.EventRecord(event_, stream_)));
  }
  TORPOR_RETURN_IF_ERROR(Check(driver.StreamSynchronize(stream_)));
  return SteadyClock().Now() - begin;
}

constexpr Bytes kLargestCopy = 64 * kMiB;
constexpr Bytes kBytesOfSize = 16 * kMiB;  // in one round, where copies are smaller
constexpr std::size_t kMostCopies = 16;
constexpr int kRounds = 3;
constexpr Duration kMeasuringTime = std::chrono::milliseconds(200);

// A quarter of a small GPU, in whole chunks of the driver's.
Bytes LargestCopy(const Device& device) {
  return std::min(kLargestCopy, RoundDown(device.properties().total_bytes / 4, 2 * kMiB));
}

// A file that others lock, too, to take turns. Whoever has it has the lock.
absl::StatusOr<UniqueFd> AwaitTurn(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  const TimePoint give_up = SteadyClock().Now() + kTurnPatience;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
    }
    if (SteadyClock().Now() > give_up) {
      return absl::UnavailableError("other executors measure their links for too long");
    }
    std::this_thread::sleep_for(kTurnLook);
  }
  return file;
}

absl::StatusOr<BandwidthCurve> Read(const std::string& path, const LinkIdentity& link) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("there is no ", path));
  std::string text(kMostFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return DecodeLinkProfile(text, link);
}

absl::Status Write(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";  // under the lock there is one writer
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.fail() || rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

}  // namespace

LinkIdentity LinkOf(const DeviceProperties& device) {
  const std::string_view uuid(reinterpret_cast<const char*>(device.uuid.data()),
                              device.uuid.size());
  return {FormatUuid(uuid), device.pci_bus_id, device.driver_version};
}

std::string EncodeLinkProfile(const LinkIdentity& link, const BandwidthCurve& curve) {
  Json points = Json::array();
  for (const memory::BandwidthPoint& point : curve) {
    points.push_back(Json::array({point.copy_bytes, point.bytes_per_second}));
  }
  const Json profile = {{"version", kVersion},
                        {"uuid", link.uuid},
                        {"pci_bus_id", link.pci_bus_id},
                        {"driver_version", link.driver_version},
                        {"curve", points}};
  return profile.dump() + "\n";
}

absl::StatusOr<BandwidthCurve> DecodeLinkProfile(std::string_view text, const LinkIdentity& link) {
  if (text.size() > kMostFileBytes) return NoProfile("too long");
  const Json profile = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!profile.is_object() || profile.value("version", Json()) != kVersion) {
    return NoProfile(absl::StrCat("no object of version ", kVersion));
  }
  if (profile.value("uuid", Json()) != link.uuid ||
      profile.value("pci_bus_id", Json()) != link.pci_bus_id ||
      profile.value("driver_version", Json()) != link.driver_version) {
    return absl::FailedPreconditionError("the profile of another GPU, slot or driver");
  }
  const Json points = profile.value("curve", Json());
  if (!points.is_array() || points.empty() || points.size() > kMostPoints) {
    return NoProfile(absl::StrCat("its curve does not have 1 to ", kMostPoints, " points"));
  }
  BandwidthCurve curve;
  curve.reserve(points.size());
  for (const Json& pair : points) {
    TORPOR_ASSIGN_OR_RETURN(const memory::BandwidthPoint point, DecodePoint(pair));
    if (!curve.empty() && point.copy_bytes <= curve.back().copy_bytes) {
      return NoProfile("the curve's sizes do not ascend");
    }
    curve.push_back(point);
  }
  return curve;
}

absl::StatusOr<BandwidthCurve> MeasureLink(const Device& device) {
  const Bytes largest = LargestCopy(device);
  if (largest == 0)
    return absl::FailedPreconditionError("the GPU is too small to measure its link");
  Measurement measurement(device, largest);
  TORPOR_RETURN_IF_ERROR(measurement.Prepare());
  BandwidthCurve curve;
  for (Bytes bytes = kLeastGroupBytes; bytes <= largest; bytes *= 2) curve.push_back({bytes, 0});
  const TimePoint give_up = SteadyClock().Now() + kMeasuringTime;
  for (int round = 0; round < kRounds; ++round) {
    for (memory::BandwidthPoint& point : curve) {
      if (SteadyClock().Now() > give_up) break;
      const std::size_t copies =
          std::clamp<std::size_t>(kBytesOfSize / point.copy_bytes, 1, kMostCopies);
      TORPOR_ASSIGN_OR_RETURN(const Duration took, measurement.Copy(point.copy_bytes, copies));
      const double rate = static_cast<double>(point.copy_bytes * copies) / ToSeconds(took);
      point.bytes_per_second = std::max(point.bytes_per_second, rate);
    }
  }
  std::erase_if(curve, [](const auto& point) { return point.bytes_per_second == 0; });
  return curve;
}

absl::StatusOr<BandwidthCurve> ProfileLink(const Device& device, const std::string& folder) {
  if (folder.empty()) return MeasureLink(device);
  const LinkIdentity link = LinkOf(device.properties());
  const std::string path = absl::StrCat(folder, "/", link.uuid, ".json");
  if (absl::StatusOr<BandwidthCurve> known = Read(path, link); known.ok()) return known;
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd turn, AwaitTurn(folder + "/lock"));
  TORPOR_ASSIGN_OR_RETURN(BandwidthCurve curve, MeasureLink(device));
  if (const absl::Status kept = Write(path, EncodeLinkProfile(link, curve)); !kept.ok()) {
    spdlog::warn("the link will be measured again at the next start: {}", kept.ToString());
  }
  return curve;
}

}  // namespace torpor::executor
