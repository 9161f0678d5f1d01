#include "memory/equal_blocks.h"

#include <algorithm>

namespace torpor::memory {
namespace {

using Blocks = std::span<const BlockContent>;

// Returns the index of the block; the list's size if it is not there.
std::size_t IndexOf(Blocks blocks, std::size_t block) {
  const auto found = std::ranges::lower_bound(blocks, block, {}, &BlockContent::block);
  const bool is_there = found != blocks.end() && found->block == block;
  return is_there ? static_cast<std::size_t>(found - blocks.begin()) : blocks.size();
}

}  // namespace

EqualRun RunAround(Blocks blocks, std::size_t block, Blocks others, std::size_t other) {
  const auto equals = [&](std::size_t a, std::size_t b) {
    const std::size_t i = IndexOf(blocks, a);
    const std::size_t j = IndexOf(others, b);
    return i < blocks.size() && j < others.size() && blocks[i].content == others[j].content;
  };
  if (!equals(block, other)) return {};
  EqualRun run{block, other, 1};
  while (run.block > 0 && run.other > 0 && equals(run.block - 1, run.other - 1)) {
    run = {run.block - 1, run.other - 1, run.count + 1};
  }
  while (equals(run.block + run.count, run.other + run.count)) ++run.count;
  return run;
}

void EqualBlocks::SetBlocks(SessionId session, Blocks blocks) {
  Remove(session);
  std::vector<std::uint64_t>& noted = noted_[session];
  for (const BlockContent& each : blocks) {
    if (!StandsForOthers(each.content)) continue;
    if (blocks_.try_emplace(each.content, Location{session, each.block}).second) {
      noted.push_back(each.content);
    }
  }
}

void EqualBlocks::Remove(SessionId session) {
  const auto noted = noted_.find(session);
  if (noted == noted_.end()) return;
  for (const std::uint64_t content : noted->second) {
    const auto found = blocks_.find(content);
    if (found != blocks_.end() && found->second.session == session) blocks_.erase(found);
  }
  noted_.erase(noted);
}

std::optional<EqualBlocks::Twin> EqualBlocks::FindTwin(SessionId session, Blocks blocks) const {
  for (const BlockContent& each : blocks) {
    if (!StandsForOthers(each.content)) continue;
    const auto found = blocks_.find(each.content);
    if (found == blocks_.end() || found->second.session == session) continue;
    return Twin{found->second.session, found->second.block, each.block, each.content};
  }
  return std::nullopt;
}

void EqualBlocks::Forget(const Twin& twin) {
  const auto found = blocks_.find(twin.content);
  if (found != blocks_.end() && found->second.session == twin.session) blocks_.erase(found);
}

void EqualBlocks::SetPlace(std::size_t place, std::uint64_t content) {
  RemovePlace(place);
  contents_[place] = content;
  if (StandsForOthers(content)) places_.try_emplace(content, place);
}

void EqualBlocks::RemovePlace(std::size_t place) {
  const auto content = contents_.find(place);
  if (content == contents_.end()) return;
  const auto found = places_.find(content->second);
  if (found != places_.end() && found->second == place) places_.erase(found);
  contents_.erase(content);
}

bool EqualBlocks::HasAt(std::size_t place, std::uint64_t content) const {
  const auto found = contents_.find(place);
  return found != contents_.end() && found->second == content;
}

std::vector<EqualRun> EqualBlocks::FindPlaces(Blocks blocks) const {
  std::vector<EqualRun> runs;
  std::size_t done = 0;  // index of the first block behind the last run
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i < done || !StandsForOthers(blocks[i].content)) continue;
    const auto found = places_.find(blocks[i].content);
    if (found == places_.end()) continue;
    const auto equals = [&](std::size_t index) {
      const std::size_t place = found->second + blocks[index].block - blocks[i].block;
      return HasAt(place, blocks[index].content);
    };
    const auto follows = [&](std::size_t index) {
      return blocks[index].block == blocks[index - 1].block + 1;
    };
    std::size_t begin = i;
    while (begin > done && follows(begin) && equals(begin - 1)) --begin;
    std::size_t end = i + 1;
    while (end < blocks.size() && follows(end) && equals(end)) ++end;
    if (end - begin < kLeastEqualBlocks) continue;
    runs.push_back({blocks[begin].block, found->second - (i - begin), end - begin});
    done = end;
  }
  return runs;
}

}  // namespace torpor::memory
