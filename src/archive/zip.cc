// SPDX-License-Identifier: Apache-2.0
#include "archive/zip.h"

#ifdef TW_ZLIB
#include <zlib.h>
#endif

#include <algorithm>
#include <cstring>

#include "archive/check_sum.h"
#include "base/checked.h"
#include "base/format.h"

namespace tilewright::archive {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr uint64_t kMaxUnpacked = uint64_t{16} << 30;

Diagnostic damaged(const std::string& what) {
  return Diagnostic(ErrorCode::kMalformedModel, "the archive is damaged: " + what, {}, "write the file again");
}

struct Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

// Finds the directory from the end of the file, where a comment of up to 64 KiB may follow it.
Result<Directory> find_directory(std::span<const std::byte> file) {
  constexpr uint64_t kEndBytes = 22;
  if (file.size() < kEndBytes) return damaged("it is too short");
  uint64_t lowest = file.size() > kEndBytes + 0xffff ? file.size() - kEndBytes - 0xffff : 0;
  for (uint64_t at = file.size() - kEndBytes + 1; at-- > lowest;) {
    ByteReader in(file.subspan(at));
    if (in.read<uint32_t>() != kEnd) continue;
    in.read<uint32_t>();  // disks
    in.read<uint16_t>();
    Directory d;
    d.entries = in.read<uint16_t>();
    d.bytes = in.read<uint32_t>();
    d.offset = in.read<uint32_t>();
    bool is64 = d.entries == 0xffff || d.bytes == 0xffffffff || d.offset == 0xffffffff;
    if (is64 && at >= 20) {
      ByteReader locator(file.subspan(at - 20));
      if (locator.read<uint32_t>() == kLocator64) {
        locator.read<uint32_t>();
        uint64_t where = locator.read<uint64_t>();
        if (where > file.size()) return damaged("its directory lies outside of the file");
        ByteReader end(file.subspan(where));
        if (end.read<uint32_t>() != kEnd64) return damaged("its directory is missing");
        end.take(20);
        end.read<uint64_t>();
        d.entries = end.read<uint64_t>();
        d.bytes = end.read<uint64_t>();
        d.offset = end.read<uint64_t>();
        if (!end.ok()) return damaged("its directory is missing");
      }
    }
    if (d.offset > file.size() || d.bytes > file.size() - d.offset)
      return damaged("its directory lies outside of the file");
    return d;
  }
  return damaged("its directory is missing");
}

#ifdef TW_ZLIB
Result<std::string> inflate_entry(std::span<const std::byte> packed, uint64_t size, const std::string& name) {
  if (size > packed.size() * 1100 + 1024) return damaged(format("'{}' cannot unpack to {} bytes", name, size));
  std::string out(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Diagnostic(ErrorCode::kInternal, "zlib cannot start");
  uint64_t in_at = 0, out_at = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    auto in_part = static_cast<uInt>(std::min<uint64_t>(packed.size() - in_at, 1u << 30));
    auto out_part = static_cast<uInt>(std::min<uint64_t>(size - out_at, 1u << 30));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + in_at));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + out_at);
    stream.avail_in = in_part, stream.avail_out = out_part;
    state = inflate(&stream, Z_NO_FLUSH);
    in_at += in_part - stream.avail_in;
    out_at += out_part - stream.avail_out;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || out_at != size) return damaged(format("'{}' cannot be unpacked", name));
  return out;
}
#else
Result<std::string> inflate_entry(std::span<const std::byte>, uint64_t, const std::string& name) {
  return Diagnostic(ErrorCode::kUnsupportedModel,
                    format("'{}' in the archive is compressed, and this program was built without zlib", name), {},
                    "write the archive without compression (numpy.savez)");
}
#endif

// A directory entry with zip64 sizes resolved.
struct DirectoryEntry {
  std::string name;
  uint64_t packed = 0, size = 0, offset = 0;
  uint32_t sum = 0;
  uint16_t flags = 0, method = 0;
};
Result<DirectoryEntry> next_entry(ByteReader& in) {
  if (in.read<uint32_t>() != kCentral) return damaged("an entry of its directory is missing");
  DirectoryEntry e;
  in.read<uint32_t>();  // versions
  e.flags = in.read<uint16_t>(), e.method = in.read<uint16_t>();
  in.read<uint32_t>();  // time
  e.sum = in.read<uint32_t>();
  e.packed = in.read<uint32_t>(), e.size = in.read<uint32_t>();
  auto name_bytes = in.read<uint16_t>(), extra_bytes = in.read<uint16_t>(), comment_bytes = in.read<uint16_t>();
  in.take(8);
  e.offset = in.read<uint32_t>();
  auto name = in.take(name_bytes);
  ByteReader extra(in.take(extra_bytes));
  in.take(comment_bytes);
  if (!in.ok()) return damaged("its directory ends early");
  while (extra.ok() && extra.remaining() >= 4) {
    auto id = extra.read<uint16_t>(), bytes = extra.read<uint16_t>();
    ByteReader field(extra.take(bytes));
    if (id != 1) continue;
    for (uint64_t* value : {&e.size, &e.packed, &e.offset})
      if (*value == 0xffffffff) *value = field.read<uint64_t>();
    if (!field.ok()) return damaged("its directory ends early");
  }
  e.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  return e;
}

Diagnostic wrong_sum(const std::string& name) { return damaged(format("'{}' does not match its check sum", name)); }

}  // namespace

bool is_zip(std::span<const std::byte> bytes) { return ByteReader(bytes).read<uint32_t>() == kLocal; }

Result<std::vector<ZipMember>> zip_members(std::span<const std::byte> file) {
  Directory directory = TW_TRY(find_directory(file));
  ByteReader in(file.subspan(directory.offset, directory.bytes));
  std::vector<ZipMember> out;
  uint64_t total = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    DirectoryEntry e = TW_TRY(next_entry(in));
    if (e.flags & 1) return Diagnostic(ErrorCode::kUnsupportedModel, format("'{}' is encrypted", e.name));
    total += e.size;
    if (e.size > kMaxUnpacked || total > kMaxUnpacked)
      return Diagnostic(ErrorCode::kLimitExceeded, "the archive unpacks to more than 16 GiB");
    if (e.offset > file.size()) return damaged(format("'{}' lies outside of the file", e.name));
    ByteReader local(file.subspan(e.offset));
    if (local.read<uint32_t>() != kLocal) return damaged(format("'{}' has no header", e.name));
    local.take(22);
    auto local_name = local.read<uint16_t>(), local_extra = local.read<uint16_t>();
    local.take(uint64_t{local_name} + local_extra);
    auto data = local.take(e.packed);
    if (!local.ok()) return damaged(format("'{}' lies outside of the file", e.name));
    if (e.method != 8 && (e.method != 0 || e.packed != e.size))
      return Diagnostic(ErrorCode::kUnsupportedModel, format("'{}' is packed by method {}", e.name, e.method));
    out.push_back({std::move(e.name), data, e.size, e.sum, e.method});
  }
  return out;
}

Result<std::string> unpack(const ZipMember& m) {
  std::string data(reinterpret_cast<const char*>(m.packed.data()), m.stored() ? m.packed.size() : 0);
  if (!m.stored()) data = TW_TRY(inflate_entry(m.packed, m.size, m.name));
  if (crc32_of(std::as_bytes(std::span(data))) != m.sum) return wrong_sum(m.name);
  return data;
}

Status check_sum(const ZipMember& m) {
  if (m.stored() && crc32_of(m.packed) != m.sum) return wrong_sum(m.name);
  return Ok{};
}

Result<std::vector<ZipEntry>> read_zip(std::span<const std::byte> file) {
  std::vector<ZipEntry> out;
  for (const ZipMember& member : TW_TRY(zip_members(file))) {
    std::string data = TW_TRY(unpack(member));
    out.push_back({member.name, std::move(data)});
  }
  return out;
}

Result<std::string> write_zip(const std::vector<ZipEntry>& entries) {
  ByteWriter out, directory;
  auto too_large = [] {
    return Diagnostic(ErrorCode::kLimitExceeded, "the archive would be 4 GiB or more", {}, "write .npy files");
  };
  for (const ZipEntry& e : entries) {
    if (e.data.size() >= 0xffffffff || out.str().size() >= 0xffffffff) return too_large();
    auto offset = static_cast<uint32_t>(out.str().size());
    auto describe = [&](ByteWriter& w) {
      w.write<uint16_t>(20);        // version needed
      w.write<uint16_t>(0x800);     // names are UTF-8
      w.write<uint16_t>(0);         // stored
      w.write<uint32_t>(0x210000);  // 1980-01-01 00:00, so that equal content gives equal bytes
      w.write<uint32_t>(crc32_of(std::as_bytes(std::span(e.data))));
      w.write<uint32_t>(static_cast<uint32_t>(e.data.size()));
      w.write<uint32_t>(static_cast<uint32_t>(e.data.size()));
      w.write<uint16_t>(static_cast<uint16_t>(e.name.size()));
      w.write<uint16_t>(0);
    };
    out.write<uint32_t>(kLocal);
    describe(out);
    out.write_bytes(e.name.data(), e.name.size());
    out.write_bytes(e.data.data(), e.data.size());
    directory.write<uint32_t>(kCentral);
    directory.write<uint16_t>(20);
    describe(directory);
    directory.write<uint16_t>(0);  // comment
    directory.write<uint16_t>(0);  // disk
    directory.write<uint16_t>(0);
    directory.write<uint32_t>(0);
    directory.write<uint32_t>(offset);
    directory.write_bytes(e.name.data(), e.name.size());
  }
  uint64_t start = out.str().size();
  if (start >= 0xffffffff || entries.size() >= 0xffff) return too_large();
  out.write_bytes(directory.str().data(), directory.str().size());
  out.write<uint32_t>(kEnd);
  out.write<uint32_t>(0);
  out.write<uint16_t>(static_cast<uint16_t>(entries.size()));
  out.write<uint16_t>(static_cast<uint16_t>(entries.size()));
  out.write<uint32_t>(static_cast<uint32_t>(directory.str().size()));
  out.write<uint32_t>(static_cast<uint32_t>(start));
  out.write<uint16_t>(0);
  return out.take();
}

}  // namespace tilewright::archive
