// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title Relay
/// @notice Passes signed calls on and appends the signer's address to the calldata.
contract Relay {
    mapping(address => uint256) public nonceOf;

    event Relayed(address indexed account, address indexed target);

    /// @notice What an account signs for its next call.
    function callDigest(address account, address target, bytes calldata data) public view returns (bytes32) {
        return keccak256(
            abi.encode(block.chainid, address(this), account, target, keccak256(data), nonceOf[account])
        );
    }

    function relay(address account, address target, bytes calldata data, uint8 v, bytes32 r, bytes32 s) external {
        address signer = ecrecover(callDigest(account, target, data), v, r, s);
        require(signer != address(0) && signer == account, "wrong signature");
        nonceOf[account] += 1;
        emit Relayed(account, target);
        (bool ok, ) = target.call(abi.encodePacked(data, account));
        require(ok, "call failed");
    }
}
