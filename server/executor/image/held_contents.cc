#include "server/executor/image/held_contents.h"

#include "memory/block_states.h"

namespace torpor::executor {

using memory::BlockStates;

void HeldContents::Note(std::size_t block, std::uint64_t content) {
  std::unique_ptr<Page>& page = pages_[block / kPageBlocks];
  if (page == nullptr) {
    page = std::make_unique<Page>();
    page->fill(BlockStates::kNoContent);
  }
  (*page)[block % kPageBlocks] = content;
}

std::uint64_t HeldContents::Of(std::size_t block) const {
  const auto page = pages_.find(block / kPageBlocks);
  return page == pages_.end() ? BlockStates::kNoContent : (*page->second)[block % kPageBlocks];
}

}  // namespace torpor::executor
