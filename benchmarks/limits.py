"""The limit of a grant: two RSA-2048 signatures in a process that does nothing else."""

import json
import subprocess
import sys
import time
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from benchmarks.load import pin
from benchmarks.world import KEY_FILE


def signing(seconds: float, core: int | None) -> dict[str, float]:
    """Return grants/s, µs of CPU and ms per grant of two signatures, measured in a process on the core."""
    command = [sys.executable, "-m", "benchmarks.limits", str(KEY_FILE), str(seconds)]
    output = subprocess.run(command, stdout=subprocess.PIPE, preexec_fn=pin(core), check=True).stdout
    rate, cpu = json.loads(output)
    return {"rate": rate, "cpu": cpu, "p50": 1000 / rate, "p99": 1000 / rate, "bad": 0.0}


def _sign(path: Path, seconds: float) -> tuple[float, float]:
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    message, algorithm, count = b"x" * 500, hashes.SHA256(), 0
    scheme = padding.PKCS1v15()
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        key.sign(message, scheme, algorithm)
        key.sign(message, scheme, algorithm)
        count += 1
    return count / (time.perf_counter() - wall), (time.process_time() - cpu) / count * 1e6


if __name__ == "__main__":
    print(json.dumps(_sign(Path(sys.argv[1]), float(sys.argv[2]))))
