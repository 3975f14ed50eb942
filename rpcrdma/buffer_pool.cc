#include "rpcrdma/buffer_pool.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

namespace weft::rpcrdma {

namespace {

constexpr std::size_t kSmallest = 1024;

// Larger buffers begin so many octets behind the start of a page. The source of a kernel copy into them often stands at
// the start of a page (a file's octets). A copy is a quarter to a half as fast if its target is less than 32 octets
// further into the page than its source (docs/performance.md).
constexpr std::size_t kPage = 4096;
constexpr std::size_t kIntoPage = 128;

// Four sizes to each power of two: at most a quarter is wasted, and buffers of similar sizes can be reused.
std::size_t size_class(std::size_t len) {
  if (len <= kSmallest) return kSmallest;
  const std::size_t step = std::bit_floor(len - 1) / 4;
  return (len + step - 1) / step * step;
}

// Large memory goes back to the system at once: a heap would keep it behind later allocations.
constexpr std::size_t kMapFrom = 64 << 10;

struct Release {
  std::size_t mapped = 0;  // octets; 0: the memory is from the heap

  void operator()(std::uint8_t* memory) const {
    if (mapped == 0) return std::free(memory);
    ASAN_UNPOISON_MEMORY_REGION(memory, mapped);
    ::munmap(memory, mapped);
  }
};
using Memory = std::unique_ptr<std::uint8_t[], Release>;

// `len` octets from the start of a page or, if they are few, aligned as malloc aligns them; null if there is no memory.
// The octets outside of [begin, end) must not be touched.
Memory allocate(std::size_t len, std::size_t align, std::size_t begin, std::size_t end) {
  if (len < kMapFrom) return Memory(static_cast<std::uint8_t*>(std::aligned_alloc(align, len)), Release{});
  void* mapped = ::mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return {};
  Memory memory(static_cast<std::uint8_t*>(mapped), Release{len});
  ASAN_POISON_MEMORY_REGION(memory.get(), begin);
  ASAN_POISON_MEMORY_REGION(memory.get() + end, len - end);
  return memory;
}

}  // namespace

struct BufferPool::Impl {
  struct Slab {
    Memory memory;
    std::uint8_t* first = nullptr;
    std::unique_ptr<verbs::Mr> mr;
    std::size_t capacity = 0;
  };

  verbs::Pd& pd;
  std::size_t max_len;
  std::size_t max_total;
  verbs::Access access;
  std::size_t in_use = 0;      // requested octets
  std::size_t registered = 0;  // octets of all slabs, including idle ones
  std::size_t num_taken = 0;
  std::vector<Slab> slabs;
  std::vector<std::size_t> vacant;  // empty slots of `slabs`
  struct Idle {
    std::vector<std::size_t> slots;  // the slot that came back last is taken first
    std::size_t least = 0;           // fewest slots that were here since the last trim
  };
  std::map<std::size_t, Idle> idle;  // by capacity

  // Gives up the `num` slots that were idle longest.
  void drop(std::size_t capacity, Idle& of, std::size_t num) {
    const auto end = of.slots.begin() + static_cast<std::ptrdiff_t>(num);
    for (auto slot = of.slots.begin(); slot != end; ++slot) {
      registered -= capacity;
      slabs[*slot].mr.reset();  // before its memory
      slabs[*slot] = Slab{};
      vacant.push_back(*slot);
    }
    of.slots.erase(of.slots.begin(), end);
  }

  void drop_idle() {
    for (auto& [capacity, of] : idle) drop(capacity, of, of.slots.size());
    idle.clear();
  }

  // The slot of a new slab; empty if there is no memory or no registration.
  std::optional<std::size_t> grow(std::size_t capacity) {
    // Idle buffers of other sizes make room, so that the registered octets stay near the octets that may be in use.
    if (registered >= max_total || capacity > max_total - registered) drop_idle();
    Slab slab;
    const std::size_t into = capacity >= kPage ? kIntoPage : 0;
    const std::size_t align = capacity >= kPage ? kPage : alignof(std::max_align_t);
    const std::size_t len = (capacity + into + align - 1) / align * align;
    slab.memory = allocate(len, align, into, into + capacity);
    if (!slab.memory) return {};
    slab.first = slab.memory.get() + into;
    auto mr = pd.reg_mr(slab.first, capacity, access);
    if (!mr.ok()) return {};
    slab.mr = std::move(*mr);
    slab.capacity = capacity;
    registered += capacity;
    if (vacant.empty()) {
      slabs.push_back(std::move(slab));
      return slabs.size() - 1;
    }
    const std::size_t slot = vacant.back();
    vacant.pop_back();
    slabs[slot] = std::move(slab);
    return slot;
  }
};

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      octets_(std::exchange(other.octets_, {})),
      slot_(other.slot_),
      lkey_(other.lkey_),
      attached_(std::move(other.attached_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  if (pool_ != nullptr) pool_->give_back(*this);
  pool_ = std::exchange(other.pool_, nullptr);
  octets_ = std::exchange(other.octets_, {});
  slot_ = other.slot_;
  lkey_ = other.lkey_;
  attached_ = std::move(other.attached_);
  return *this;
}

Buffer::~Buffer() {
  if (pool_ != nullptr) pool_->give_back(*this);
}

BufferPool::BufferPool(verbs::Pd& pd, std::size_t max_len, std::size_t max_total, bool read_sinks)
    : impl_(std::make_unique<Impl>(
          pd, max_len, max_total,
          read_sinks ? verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite : verbs::Access::kLocalWrite)) {}

BufferPool::~BufferPool() {
  assert(impl_->num_taken == 0 && "a Buffer outlives its pool");
}

Buffer BufferPool::take(std::size_t len) {
  Impl& pool = *impl_;
  if (len == 0 || len > pool.max_len || pool.in_use > pool.max_total || len > pool.max_total - pool.in_use) return {};
  const std::size_t capacity = size_class(len);
  std::optional<std::size_t> slot;
  if (const auto at = pool.idle.find(capacity); at != pool.idle.end() && !at->second.slots.empty()) {
    Impl::Idle& idle = at->second;
    slot = idle.slots.back();
    idle.slots.pop_back();
    idle.least = std::min(idle.least, idle.slots.size());
  } else {
    slot = pool.grow(capacity);
  }
  if (!slot) return {};
  pool.in_use += len;
  ++pool.num_taken;
  Buffer buffer;
  buffer.pool_ = this;
  buffer.octets_ = MutBytes(pool.slabs[*slot].first, len);
  buffer.slot_ = *slot;
  buffer.lkey_ = pool.slabs[*slot].mr->lkey();
  return buffer;
}

bool BufferPool::trim() {
  for (auto& [capacity, idle] : impl_->idle) {
    impl_->drop(capacity, idle, idle.least);
    idle.least = idle.slots.size();
  }
  std::erase_if(impl_->idle, [](const auto& entry) { return entry.second.slots.empty(); });
  return impl_->registered != 0;
}

std::size_t BufferPool::registered() const {
  return impl_->registered;
}
std::size_t BufferPool::in_use() const {
  return impl_->in_use;
}
std::size_t BufferPool::max_total() const {
  return impl_->max_total;
}

void BufferPool::give_back(Buffer& buffer) {
  Impl& pool = *impl_;
  pool.in_use -= buffer.octets_.size();
  --pool.num_taken;
  pool.idle[pool.slabs[buffer.slot_].capacity].slots.push_back(buffer.slot_);
  buffer.pool_ = nullptr;
  buffer.octets_ = {};
}

}  // namespace weft::rpcrdma
