// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title FamilySafes
/// @notice Ether safes that are opened by a signature. Anyone may fund a safe; its owner sets the signer later.
contract FamilySafes {
    struct Safe {
        address owner;
        uint256 balance;
        uint256 nonce;
    }

    uint256 public safeCount;
    mapping(uint256 => Safe) public safes;
    mapping(uint256 => address) public signerOf;

    event Created(uint256 indexed safe, address indexed owner);
    event Funded(uint256 indexed safe, uint256 amount);
    event SignerSet(uint256 indexed safe, address signer);
    event Released(uint256 indexed safe, address indexed to, uint256 amount);

    function create() external payable returns (uint256 safe) {
        safe = safeCount++;
        safes[safe] = Safe(msg.sender, msg.value, 0);
        emit Created(safe, msg.sender);
    }

    function fund(uint256 safe) external payable {
        require(safe < safeCount, "no such safe");
        safes[safe].balance += msg.value;
        emit Funded(safe, msg.value);
    }

    function setSigner(uint256 safe, address signer) external {
        require(msg.sender == safes[safe].owner, "not owner");
        signerOf[safe] = signer;
        emit SignerSet(safe, signer);
    }

    /// @notice Digest to be signed for the next release of a safe.
    function releaseDigest(uint256 safe, address to, uint256 amount) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), safe, safes[safe].nonce, to, amount));
    }

    /// @notice Pays ether of a safe out with its signer's signature.
    function release(uint256 safe, address payable to, uint256 amount, uint8 v, bytes32 r, bytes32 s) external {
        address signer = ecrecover(releaseDigest(safe, to, amount), v, r, s);
        require(signer == signerOf[safe], "wrong signature");
        safes[safe].nonce += 1;
        safes[safe].balance -= amount;
        emit Released(safe, to, amount);
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
