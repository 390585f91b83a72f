// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title MemoStorage
/// @notice Storage that till and recorder share.
abstract contract MemoStorage {
    bytes32 public lastMemo;
}

/// @title MemoRecorder
/// @notice Stores the memo of a payment; tills run it in their own context.
contract MemoRecorder is MemoStorage {
    event MemoRecorded(bytes32 memo);

    /// @notice Stores a memo unless it is empty or repeats the last one.
    /// @dev Payable because a till runs this code while it takes a payment; it keeps no ether of its own.
    function record(bytes32 memo) external payable {
        if (memo != bytes32(0) && memo != lastMemo) {
            lastMemo = memo;
            emit MemoRecorded(memo);
        }
    }
}

/// @title PaymentTill
/// @notice Takes payments with a memo for a shop and pays the takings out to its owner.
contract PaymentTill is MemoStorage {
    address public immutable recorder;
    address public owner;
    uint256 public payments;
    uint256 public takings;
    bool public open = true;

    mapping(address => uint256) public paidBy;
    mapping(address => uint256) public refundable;

    event Paid(address indexed customer, uint256 amount, bytes32 memo);
    event Refunded(address indexed customer, uint256 amount);
    event TakingsPaid(address indexed to, uint256 amount);
    event OpenChanged(bool open);

    modifier onlyOwner() {
        require(msg.sender == owner, "not owner");
        _;
    }

    constructor(address recorder_) {
        require(recorder_.code.length > 0, "no code");
        recorder = recorder_;
        owner = msg.sender;
    }

    /// @notice Pays the shop.
    /// @param memo Free text of up to 32 bytes.
    function pay(bytes32 memo) external payable {
        require(open, "till closed");
        require(msg.value > 0, "nothing paid");
        payments += 1;
        takings += msg.value;
        paidBy[msg.sender] += msg.value;
        emit Paid(msg.sender, msg.value, memo);
        (bool ok, ) = recorder.delegatecall(abi.encodeCall(MemoRecorder.record, (memo)));
        require(ok, "memo not recorded");
    }

    /// @notice Sets part of the takings aside for a customer.
    function grantRefund(address customer, uint256 amount) external onlyOwner {
        require(amount <= paidBy[customer], "more than was paid");
        paidBy[customer] -= amount;
        takings -= amount;
        refundable[customer] += amount;
    }

    /// @notice Pays the caller's refund out.
    function takeRefund() external {
        uint256 amount = refundable[msg.sender];
        require(amount > 0, "no refund");
        refundable[msg.sender] = 0;
        emit Refunded(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }

    /// @notice Pays the takings to the owner.
    function payTakings() external onlyOwner {
        uint256 amount = takings;
        takings = 0;
        emit TakingsPaid(owner, amount);
        (bool sent, ) = owner.call{value: amount}("");
        require(sent, "transfer failed");
    }

    function setOpen(bool open_) external onlyOwner {
        open = open_;
        emit OpenChanged(open_);
    }
}
