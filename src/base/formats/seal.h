// SPDX-License-Identifier: Apache-2.0
// A trailer behind an artifact's ELF content by which the loader detects any corruption before mapping the file.
// Weights are hashed separately: they cannot crash a process, and hashing them would make loading slow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace tilewright {

struct ArtifactSeal {
  uint64_t elf_bytes = 0;                        // size without the trailer
  uint64_t params_offset = 0, params_bytes = 0;  // in the file; not part of content_hash
  uint64_t content_hash = 0, params_hash = 0;
};

// Computes the trailer of a finished library or object, to be appended to the file. (Linkers do not read behind the
// sections.) Errors: BadArtifact (no valid ELF file).
Result<std::string> make_artifact_seal(std::span<const std::byte> elf);
// Seals a finished file in place. Errors: BadArtifact, CannotWrite.
Status append_artifact_seal(const std::string& path);
// Reads the seal at a file's end; nothing if there is none. Errors: BadArtifact (damaged trailer).
Result<std::optional<ArtifactSeal>> read_artifact_seal(std::span<const std::byte> file);
// Verifies the file's content (and, if requested, weights) against the seal. Errors: BadArtifact.
Status check_artifact_seal(std::span<const std::byte> file, const ArtifactSeal& seal, bool params_too);
// Verifies the seals of an object file, or of an archive's members, since a linker would accept damaged code. Files
// without a seal pass. Errors: FileNotFound, BadArtifact.
Status check_object_seals(const std::string& path);

}  // namespace tilewright
