// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title GuardedSafe
/// @notice Ether safe of one guardian, who signs withdrawals off-chain. Made by SafeMaker.
contract GuardedSafe {
    address public immutable guardian;
    uint256 public nonce;

    event Deposited(address indexed from, uint256 amount);
    event Withdrawn(address indexed to, uint256 amount, uint256 nonce);

    constructor(address guardian_) payable {
        guardian = guardian_;
    }

    receive() external payable {
        emit Deposited(msg.sender, msg.value);
    }

    /// @notice What the guardian signs for a withdrawal.
    function withdrawalDigest(address to, uint256 amount, uint256 nonce_) public view returns (bytes32) {
        bytes32 content = keccak256(abi.encode("withdrawal", block.chainid, address(this), to, amount, nonce_));
        return keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n32", content));
    }

    /// @notice Pays ether out with the guardian's signature; a signature counts for one nonce.
    function withdraw(address payable to, uint256 amount, uint8 v, bytes32 r, bytes32 s) external {
        address signer = ecrecover(withdrawalDigest(to, amount, nonce), v, r, s);
        require(signer == guardian && signer != address(0), "wrong signature");
        emit Withdrawn(to, amount, nonce);
        nonce += 1;
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}

/// @title SafeMaker
/// @notice Makes safes and remembers whose they are.
contract SafeMaker {
    mapping(address => GuardedSafe[]) private safesOf;

    event SafeMade(address indexed guardian, address safe);

    function make() external payable returns (GuardedSafe safe) {
        safe = new GuardedSafe{value: msg.value}(msg.sender);
        safesOf[msg.sender].push(safe);
        emit SafeMade(msg.sender, address(safe));
    }

    function countOf(address guardian) external view returns (uint256) {
        return safesOf[guardian].length;
    }

    function safeAt(address guardian, uint256 position) external view returns (GuardedSafe) {
        return safesOf[guardian][position];
    }
}
